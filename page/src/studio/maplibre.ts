// MapLibre with its worker as a file of its own, which is all that the page's content security policy lets it be.
import * as maplibre from "maplibre-gl";
import worker from "maplibre-gl/dist/maplibre-gl-worker.mjs?url";
import "maplibre-gl/dist/maplibre-gl.css";

maplibre.setWorkerUrl(worker);

export default maplibre;
