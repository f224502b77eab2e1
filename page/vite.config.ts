// Two pages from one house: the studio as files of fixed names that a server hands out, and the report as one script
// and one style sheet that are written into a single HTML file. Names carry no hashes, so that a build changes the
// content of files and not the list of them.
import { defineConfig, type UserConfig } from "vite";

const INTO = "../src/sfumato/pages/";

const studio: UserConfig = {
  root: "src/studio",
  base: "/static/",
  build: {
    outDir: `../../${INTO}studio`,
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    chunkSizeWarningLimit: 2000,
    rollupOptions: {
      output: { entryFileNames: "studio.js", chunkFileNames: "[name].js", assetFileNames: "[name][extname]" },
    },
  },
  worker: { format: "es", rollupOptions: { output: { entryFileNames: "[name].js" } } },
};

const report: UserConfig = {
  root: "src/report",
  build: {
    outDir: `../../${INTO}report`,
    emptyOutDir: true,
    target: "es2022",
    cssCodeSplit: false,
    lib: { entry: "main.ts", formats: ["iife"], name: "sfumatoReport", fileName: () => "report.js", cssFileName: "report" },
  },
};

export default defineConfig(({ mode }) => ({
  ...(mode === "report" ? report : mode === "studio" ? studio : {}),
  define: { "process.env.NODE_ENV": '"production"' },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
}));
