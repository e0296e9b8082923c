import { stat } from "node:fs/promises";
import { imageTarballs } from "./index.ts";

// Builds the images of a test cluster and prints where they are.
for (const { name, file, digest } of await imageTarballs()) {
  const megabytes = (await stat(file)).size / 1e6;
  console.log(`${name.padEnd(30)} ${megabytes.toFixed(1).padStart(6)} MB  ${digest.slice(0, 19)}  ${file}`);
}
