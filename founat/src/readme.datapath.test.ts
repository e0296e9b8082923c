import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { machine } from "@egress-nat/test/bed/datapath/machine";
import { afterAll, beforeAll, expect, test } from "vitest";
import { installTarballs, pack, writeReadmeExample } from "./testing/package.ts";
import { addressOf, ask, buildTopology, destroyTopology } from "./testing/topology.ts";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "founat-readme-"));
  await buildTopology();
});
afterAll(async () => {
  await destroyTopology();
  await rm(folder, { recursive: true });
});

test("the README's example runs in a project that installs the package", async () => {
  const internet = addressOf("internet", "ipv4");
  expect(await ask("client", "tcp", internet)).toBe(addressOf("client", "ipv4"));
  const project = join(machine.share, "a-project");
  await installTarballs(await pack(folder), project);
  await machine.run(["node", await writeReadmeExample(project)]);
  expect(await ask("client", "tcp", internet)).toBe(addressOf("gateway", "ipv4"));
});
