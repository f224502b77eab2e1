import { render } from "preact";
import maplibre from "./maplibre";
import "./studio.css";

render(<main>{maplibre.getVersion()}</main>, document.getElementById("app")!);
