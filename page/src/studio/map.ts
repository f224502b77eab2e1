// The map: cells in colours, outlines below them, a circle that follows the pointer, and areas that are drawn by hand.
// Nothing is fetched for it but the tiles of a host that the operator named.
import type { Map as Drawn, MapMouseEvent, StyleSpecification } from "maplibre-gl";
import { colour, css, type MapName } from "../shared/palette";
import { ink } from "./ink";
import maplibre from "./maplibre";
import { cellOf, circle, latitude, mercator, planeOf, type Plane } from "./plane";
import type { Area, CellPlace, GridPlace, Place } from "./state";

export interface Shown {
  values: Float32Array;
  low: number;
  high: number;
  colours: MapName;
}
export type Drawing = "rectangle" | "polygon" | null;
export type Corners = [number, number][];
export interface Events {
  /** The cell below the pointer, or in the middle for whoever uses the keyboard; null outside. */
  hover?: (cell: number | null, at: [number, number]) => void;
  drawn?: (kind: "rectangle" | "polygon", corners: Corners) => void;
}

const EMPTY: GeoJSON.FeatureCollection = { type: "FeatureCollection", features: [] };
const MOST_LINES = 320;
const feature = (geometry: GeoJSON.Geometry, properties = {}): GeoJSON.Feature => ({ type: "Feature", properties, geometry });
const collection = (...features: GeoJSON.Feature[]): GeoJSON.FeatureCollection => ({ type: "FeatureCollection", features });

export class PlaceMap {
  private readonly map: Drawn;
  private readonly ready: Promise<void>;
  private plane: Plane | null = null;
  private place: Place | null = null;
  private delta: { length: number; metres: boolean } | null = null;
  private drawing: Drawing = null;
  private corners: Corners = [];
  private at: [number, number] | null = null;
  private gone = false;

  constructor(
    private readonly host: HTMLElement,
    label: string,
    private readonly events: Events,
    tiles: string | null,
  ) {
    const style: StyleSpecification = {
      version: 8,
      sources: { ...(tiles ? { tiles: { type: "raster", tiles: [tiles], tileSize: 256 } } : {}) },
      layers: [
        { id: "ground", type: "background", paint: { "background-color": this.ink("--map-ground") } },
        ...(tiles ? [{ id: "tiles", type: "raster" as const, source: "tiles", paint: { "raster-opacity": 0.6 } }] : []),
      ],
    };
    this.map = new maplibre.Map({
      container: host,
      style,
      attributionControl: false,
      dragRotate: false,
      pitchWithRotate: false,
      renderWorldCopies: false,
      fadeDuration: 0,
      canvasContextAttributes: { preserveDrawingBuffer: true },
      center: [0, 0],
      zoom: 1,
    });
    this.map.touchZoomRotate.disableRotation();
    this.map.keyboard.disableRotation();
    this.map.addControl(new maplibre.NavigationControl({ showCompass: false }), "top-right");
    this.map.getCanvas().setAttribute("aria-label", `${label}. Arrow keys move it, plus and minus zoom; what is told is of the middle.`);
    this.ready = new Promise((done) => this.map.once("load", () => done()));
    void this.ready.then(() => this.furnish());
    this.map.on("mousemove", (event) => this.moved(event));
    this.map.on("mouseout", () => this.left());
    this.map.on("move", () => this.middle());
    this.map.getCanvas().addEventListener("focus", () => this.middle());
    this.map.on("mousedown", (event) => this.pressed(event));
    this.map.on("mouseup", (event) => this.released(event));
    this.map.on("click", (event) => this.clicked(event));
    this.map.on("dblclick", (event) => {
      if (this.drawing === "polygon") {
        event.preventDefault();
        this.finish();
      }
    });
    host.addEventListener("keydown", this.typed);
  }

  remove(): void {
    this.gone = true;
    this.host.removeEventListener("keydown", this.typed);
    this.map.remove();
  }

  /** The cells that are drawn, with values or as an empty grid. The view follows where the place is another one. */
  async show(place: Place | null, values: Shown | null): Promise<void> {
    await this.ready;
    if (this.gone) return;
    const moved = place !== this.place && JSON.stringify(place && planeOf(place).bounds) !== JSON.stringify(this.plane?.bounds);
    this.place = place;
    this.plane = place && planeOf(place);
    this.clear();
    if (!place || !this.plane) return;
    if (place.kind === "grid") this.grid(place, values);
    else this.cells(place, values);
    if (moved) this.fit();
  }

  async outline(area: Area | null): Promise<void> {
    await this.ready;
    if (!this.gone) this.source("outlines").setData(area && (!this.plane || this.plane.degrees) ? area.geojson : EMPTY);
  }

  hide(delta: { length: number; metres: boolean } | null): void {
    this.delta = delta;
    this.ring();
  }

  draw(kind: Drawing): void {
    this.drawing = kind;
    this.corners = [];
    this.sketch();
    this.map.getCanvas().style.cursor = kind ? "crosshair" : "";
    if (kind) {
      this.map.dragPan.disable();
      this.map.doubleClickZoom.disable();
      this.map.getCanvas().focus();
    } else {
      this.map.dragPan.enable();
      this.map.doubleClickZoom.enable();
    }
  }

  async areas(all: { corners: Corners; chosen: boolean }[]): Promise<void> {
    await this.ready;
    if (this.gone) return;
    const plane = this.plane;
    const rings = all.map(({ corners, chosen }) => {
      const ring = corners.map(([x, y]) => (plane ? plane.to(x, y) : [x, y]));
      return feature({ type: "Polygon", coordinates: [[...ring, ring[0]!]] }, { chosen });
    });
    this.source("areas").setData(collection(...rings));
  }

  /** Colours of light or dark. */
  async recolour(): Promise<void> {
    await this.ready;
    if (this.gone) return;
    this.map.setPaintProperty("ground", "background-color", this.ink("--map-ground"));
    for (const [layer, name] of [["outlines", "--map-outline"], ["lines", "--map-line"], ["ring", "--map-ring"], ["sketch", "--map-ring"], ["areas", "--map-area"]] as const)
      if (this.map.getLayer(layer)) this.map.setPaintProperty(layer, "line-color", this.ink(name));
    this.map.setPaintProperty("ring-fill", "fill-color", this.ink("--map-ring"));
  }

  fit(): void {
    if (!this.plane) return;
    const [x0, y0, x1, y1] = this.plane.bounds;
    this.map.resize();
    this.map.fitBounds([[x0, Math.max(-85, y0)], [x1, Math.min(85, y1)]], { padding: 28, animate: false });
  }

  resize(): void {
    this.map.resize();
  }

  // ------------------------------------------------------------------ inside

  private ink(name: string): string {
    return ink(this.host, name);
  }

  private source(name: string) {
    return this.map.getSource(name) as unknown as { setData: (data: GeoJSON.FeatureCollection) => void };
  }

  private furnish(): void {
    if (this.gone) return;
    for (const name of ["outlines", "lines", "ring", "sketch", "areas"]) this.map.addSource(name, { type: "geojson", data: EMPTY, ...(name === "ring" ? { tolerance: 0 } : {}) });
    const line = (id: string, ink: string, width: number, more = {}) =>
      this.map.addLayer({ id, type: "line", source: id, paint: { "line-color": this.ink(ink), "line-width": width, ...more } });
    line("outlines", "--map-outline", 1);
    line("lines", "--map-line", 0.5);
    this.map.addLayer({ id: "ring-fill", type: "fill", source: "ring", paint: { "fill-color": this.ink("--map-ring"), "fill-opacity": 0.22 } });
    this.map.addLayer({ id: "ring-casing", type: "line", source: "ring", paint: { "line-color": "#ffffff", "line-width": 4.5 } });
    line("ring", "--map-ring", 2.25);
    line("areas", "--map-area", 2.5);
    line("sketch", "--map-ring", 2, { "line-dasharray": [2, 1.5] });
    this.map.addControl(new maplibre.ScaleControl({ maxWidth: 110 }), "bottom-left");
    this.host.dataset.ready = "yes";
  }

  private clear(): void {
    for (const layer of ["cells", "cells-line"]) if (this.map.getLayer(layer)) this.map.removeLayer(layer);
    if (this.map.getSource("cells")) this.map.removeSource("cells");
    this.source("lines").setData(EMPTY);
    const scale = this.host.querySelector<HTMLElement>(".maplibregl-ctrl-scale");
    if (scale) scale.hidden = this.plane !== null && !this.plane.degrees;
  }

  private grid(place: GridPlace, shown: Shown | null): void {
    const plane = this.plane!;
    const [x0, y0, x1, y1] = plane.bounds;
    if (shown) {
      const canvas = painted(place, plane, shown);
      this.map.addSource("cells", { type: "canvas", canvas, animate: false, coordinates: [[x0, y1], [x1, y1], [x1, y0], [x0, y0]] });
      this.map.addLayer({ id: "cells", type: "raster", source: "cells", paint: { "raster-resampling": "nearest", "raster-fade-duration": 0 } }, "outlines");
    }
    const few = place.x.length + place.y.length <= MOST_LINES;
    const lines: number[][][] = [];
    if (!shown && few) {
      for (const x of place.x) lines.push([plane.to(x, place.y[0]!), plane.to(x, place.y.at(-1)!)]);
      for (const y of place.y) lines.push([plane.to(place.x[0]!, y), plane.to(place.x.at(-1)!, y)]);
    } else lines.push([[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]]);
    this.source("lines").setData(collection(feature({ type: "MultiLineString", coordinates: lines })));
  }

  private cells(place: CellPlace, shown: Shown | null): void {
    const plane = this.plane!;
    const shapes = place.outlines;
    if (!shapes) {
      const [x0, y0, x1, y1] = plane.bounds;
      this.source("lines").setData(collection(feature({ type: "LineString", coordinates: [[x0, y0], [x1, y0], [x1, y1], [x0, y1], [x0, y0]] })));
      return;
    }
    const span = shown ? shown.high - shown.low || 1 : 1;
    const features = shapes.map((parts, i) =>
      feature(
        { type: "MultiPolygon", coordinates: parts.map((rings) => rings.map((ring) => ring.map(([x, y]) => plane.to(x!, y!)))) },
        { cell: i, colour: shown && !Number.isNaN(shown.values[i]) ? css(colour((shown.values[i]! - shown.low) / span, shown.colours)) : "rgba(0,0,0,0)" },
      ),
    );
    this.map.addSource("cells", { type: "geojson", data: collection(...features) });
    this.map.addLayer({ id: "cells", type: "fill", source: "cells", paint: { "fill-color": ["get", "colour"], "fill-antialias": !shown } }, "outlines");
    this.map.addLayer({ id: "cells-line", type: "line", source: "cells", paint: { "line-color": this.ink("--map-line"), "line-width": 0.6 } }, "outlines");
  }

  private told(lng: number, lat: number, point: { x: number; y: number }): void {
    const place = this.place;
    const plane = this.plane;
    if (!place || !plane) return;
    const at = plane.from(lng, lat);
    if (place.kind === "grid") {
      const [i, j] = [cellOf(place.x, at[0]), cellOf(place.y, at[1])];
      this.events.hover?.(i < 0 || j < 0 ? null : i * (place.y.length - 1) + j, at);
      return;
    }
    const found = this.map.getLayer("cells") ? this.map.queryRenderedFeatures([point.x, point.y], { layers: ["cells"] })[0] : undefined;
    this.events.hover?.(found ? (found.properties.cell as number) : null, at);
  }

  private moved(event: MapMouseEvent): void {
    this.at = [event.lngLat.lng, event.lngLat.lat];
    this.ring();
    this.told(...this.at, event.point);
    if (this.drawing && this.corners.length) this.sketch();
  }

  private left(): void {
    this.at = null;
    this.ring();
    this.events.hover?.(null, [0, 0]);
  }

  /** For whoever moves the map by keys: the ring and what is told are of its middle. */
  private middle(): void {
    if (this.at || document.activeElement !== this.map.getCanvas()) return this.ring();
    const { lng, lat } = this.map.getCenter();
    this.ring();
    this.told(lng, lat, this.map.project([lng, lat]));
  }

  private ring(): void {
    if (this.gone || !this.map.getSource("ring")) return;
    const centre = this.map.getCenter();
    const [lng, lat] = this.at ?? [centre.lng, centre.lat];
    const data = this.delta && this.plane ? collection(feature({ type: "Polygon", coordinates: [circle(this.plane, lng, lat, this.delta)] })) : EMPTY;
    this.source("ring").setData(data);
  }

  private own(event: { lngLat: { lng: number; lat: number } }): [number, number] {
    return this.plane!.from(event.lngLat.lng, event.lngLat.lat);
  }

  private pressed(event: MapMouseEvent): void {
    if (this.drawing === "rectangle" && this.plane) this.corners = [this.own(event)];
  }

  private released(event: MapMouseEvent): void {
    if (this.drawing !== "rectangle" || !this.corners.length || !this.plane) return;
    const [[x0, y0], [x1, y1]] = [this.corners[0]!, this.own(event)];
    this.corners = [];
    this.sketch();
    if (x0 !== x1 && y0 !== y1) this.events.drawn?.("rectangle", box(x0, y0, x1, y1));
  }

  private clicked(event: MapMouseEvent): void {
    if (this.drawing !== "polygon" || !this.plane) return;
    const at = this.own(event);
    const last = this.corners.at(-1);
    if (!last || last[0] !== at[0] || last[1] !== at[1]) this.corners.push(at);
    this.sketch();
  }

  private finish(): void {
    const corners = this.corners;
    this.corners = [];
    this.sketch();
    if (corners.length >= 3) this.events.drawn?.("polygon", corners);
  }

  private readonly typed = (event: KeyboardEvent): void => {
    if (!this.drawing) return;
    const { lng, lat } = this.map.getCenter();
    const at: [number, number] | null = this.plane && this.plane.from(lng, lat);
    if (event.key === "Escape") {
      this.corners = [];
      this.sketch();
    } else if (event.key === "Enter" && this.drawing === "polygon" && this.corners.length >= 3) this.finish();
    else if (event.key === " " && at) {
      // A corner in the middle of the map: two make a rectangle, three or more and Enter a polygon.
      event.preventDefault();
      this.corners.push(at);
      if (this.drawing === "rectangle" && this.corners.length === 2) {
        const [[x0, y0], [x1, y1]] = this.corners as [[number, number], [number, number]];
        this.corners = [];
        if (x0 !== x1 && y0 !== y1) this.events.drawn?.("rectangle", box(x0, y0, x1, y1));
      }
      this.sketch();
    }
  };

  private sketch(): void {
    if (!this.map.getSource("sketch") || !this.plane) return;
    const corners = [...this.corners];
    if (corners.length && this.at) corners.push(this.plane.from(...this.at));
    let line = corners;
    if (this.drawing === "rectangle" && corners.length === 2) {
      const [[x0, y0], [x1, y1]] = corners as [[number, number], [number, number]];
      line = box(x0, y0, x1, y1);
    }
    const ring = line.map(([x, y]) => this.plane!.to(x, y));
    const data = ring.length > 1 ? collection(feature({ type: "LineString", coordinates: [...ring, ring[0]!] })) : EMPTY;
    this.source("sketch").setData(data);
  }
}

const box = (x0: number, y0: number, x1: number, y1: number): Corners => {
  const [a, b, c, d] = [Math.min(x0, x1), Math.min(y0, y1), Math.max(x0, x1), Math.max(y0, y1)];
  return [[a, b], [c, b], [c, d], [a, d]];
};

/** The cells as a picture in the map's own projection: every row of it at the latitude where it lies. */
function painted(place: GridPlace, plane: Plane, { values, low, high, colours }: Shown): HTMLCanvasElement {
  const [nx, ny] = [place.x.length - 1, place.y.length - 1];
  const canvas = document.createElement("canvas");
  const [x0, , x1] = plane.bounds;
  const even = evenly(place.x);
  // So wide that a cell is many pixels: between neighbouring pixels colours are mixed.
  canvas.width = even ? nx * Math.max(1, Math.ceil(1024 / nx)) : Math.min(2048, nx * 4);
  canvas.height = Math.min(2048, Math.max(1024, ny));
  const context = canvas.getContext("2d")!;
  const image = context.createImageData(canvas.width, canvas.height);
  const [bottom, top] = [mercator(plane.bounds[1]), mercator(plane.bounds[3])];
  const span = high - low || 1;
  const across = Array.from({ length: canvas.width }, (_, px) =>
    even ? Math.floor((px * nx) / canvas.width) : cellOf(place.x, plane.from(x0 + ((px + 0.5) / canvas.width) * (x1 - x0), 0)[0]),
  );
  for (let py = 0; py < canvas.height; py++) {
    const lat = latitude(top - ((py + 0.5) / canvas.height) * (top - bottom));
    const j = cellOf(place.y, plane.from(0, lat)[1]);
    for (let px = 0; px < canvas.width; px++) {
      const value = values[across[px]! * ny + j]!;
      if (Number.isNaN(value)) continue; // suppressed: the ground shows
      image.data.set([...colour((value - low) / span, colours), 255], 4 * (py * canvas.width + px));
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

function evenly(edges: readonly number[]): boolean {
  const step = (edges.at(-1)! - edges[0]!) / (edges.length - 1);
  return edges.every((edge, i) => Math.abs(edge - edges[0]! - i * step) < 1e-6 * Math.abs(step));
}
