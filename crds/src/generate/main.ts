/** Writes the CustomResourceDefinitions and the API reference, or checks that the committed ones are what would be written. */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { generatedYaml, outdatedFiles, POD_TEMPLATE_FILE, REPOSITORY } from "./files.ts";
import { type OpenApiDocument, podTemplateSchema } from "./pod-template.ts";

const USAGE = `usage: npm run generate [-- OPTION...]

Writes crds/crds/*.yaml, the Helm chart's copy of them and docs/api.md, from the zod schemas in crds/src.

  --check                  write nothing; fail when a file would change
  --pod-template OPENAPI   also renew the schema of pod templates from what
                           kubectl get --raw /openapi/v3/apis/apps/v1 > OPENAPI
                           wrote, on the newest Kubernetes that is supported
  --help                   this text
`;

const { values: options } = parseArgs({
  options: {
    check: { type: "boolean", default: false },
    "pod-template": { type: "string" },
    help: { type: "boolean", default: false },
  },
});

if (options.help) process.stdout.write(USAGE);
else if (options.check) await check();
else await write(options["pod-template"]);

async function check(): Promise<void> {
  const outdated = await outdatedFiles();
  if (outdated.length === 0) return console.log("everything is up to date");
  console.error(`not up to date: ${outdated.map(({ path }) => path).join(", ")}\nrun: npm run generate`);
  process.exitCode = 1;
}

async function write(openApiFile: string | undefined): Promise<void> {
  if (openApiFile !== undefined) {
    const document = JSON.parse(await readFile(openApiFile, "utf8")) as OpenApiDocument;
    await writeFile(POD_TEMPLATE_FILE, generatedYaml(podTemplateSchema(document)));
  }
  const outdated = await outdatedFiles();
  for (const { path, text } of outdated) {
    await mkdir(dirname(join(REPOSITORY, path)), { recursive: true });
    await writeFile(join(REPOSITORY, path), text);
    console.log(`wrote ${path}`);
  }
  if (outdated.length === 0) console.log("everything is up to date");
}
