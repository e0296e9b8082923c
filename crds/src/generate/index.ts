/** What is generated from the schemas: the CustomResourceDefinitions and the API reference. */

export { type GeneratedFile, generatedFiles, renewPodTemplate } from "./files.ts";
