import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeAll, expect, test } from "vitest";
import { LoadDialogue } from "./load-dialogue.ts";
import { loadProgram } from "./load-program.ts";
import { type LoadReport, loadArguments } from "./load-report.ts";
import { roundOf } from "./round.ts";

const ADDRESSES = ["127.0.0.1", "::1"];

let program: string;
const running: ChildProcess[] = [];

beforeAll(async () => {
  program = await loadProgram();
});
afterEach(() => Promise.all(running.splice(0).map(end)));

async function startServer(): Promise<ChildProcess> {
  const server = spawn(program, ["serve", ...ADDRESSES], { stdio: ["ignore", "pipe", "inherit"] });
  running.push(server);
  await once(server.stdout, "data");
  return server;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

/** Runs the load against a server on this machine, and does something between the mark and the end. */
async function reportAfter(act: (server: ChildProcess) => Promise<void>): Promise<LoadReport> {
  const server = await startServer();
  const load = spawn(program, loadArguments({ targets: ADDRESSES, busy: 1, idle: 1, rate: 10 }));
  running.push(load);
  const dialogue = new LoadDialogue(load.stdout, (text) => load.stdin.write(text));
  const gateways = await dialogue.ready();
  expect(gateways).toEqual(ADDRESSES.flatMap((address) => [address, address]));
  await sleep(700);
  await dialogue.mark();
  await act(server);
  return dialogue.stop();
}

test("flows survive where nothing is done, and know the address that they are seen with", async () => {
  const report = await reportAfter(async () => void (await sleep(700)));
  expect(report.flows.map(({ protocol, isIdle, gateway, end }) => [protocol, isIdle, gateway, end])).toEqual(
    ADDRESSES.flatMap((address) => [
      ["tcp", false, address, "survived"],
      ["tcp", true, address, "survived"],
      ["udp", false, address, "survived"],
    ]),
  );
  expect(report.connections.map(({ target, failures }) => ({ target, failures }))).toEqual(
    ADDRESSES.map((target) => ({ target, failures: [] })),
  );
  expect(report.connections.every(({ successesMs }) => successesMs.length >= 8)).toBe(true);
});

test("a server that ends and starts again has reset TCP, and UDP and new connections work again", async () => {
  let goneMs = 0;
  const report = await reportAfter(async (server) => {
    await end(server);
    const endedAt = performance.now();
    await sleep(300);
    await startServer();
    goneMs = performance.now() - endedAt;
    await sleep(500);
  });
  const ends = report.flows.map(({ protocol, end }) => [protocol, end]);
  expect(ends).toEqual(
    ADDRESSES.flatMap(() => [
      ["tcp", "reset"],
      ["tcp", "reset"],
      ["udp", "survived"],
    ]),
  );
  const round = roundOf([report], ADDRESSES, 0);
  expect(round).toMatchObject({ reset: 4, broken: 0, surviving: 2, failedBefore: 0, lostOfOthers: 0 });
  expect(round.errors["connection refused"]).toBeGreaterThan(0);
  expect(round.downtimeMs).toBeGreaterThan(0);
  expect(round.downtimeMs).toBeLessThan(goneMs + 700);
});

test("a visit fails when the server sees the visitor itself, and when there is no server", async () => {
  const visit = () => spawnSync(program, ["visit", "127.0.0.1"], { encoding: "utf8" });
  expect(visit()).toMatchObject({ status: 1, stderr: expect.stringContaining("connection refused") });
  await startServer();
  expect(visit()).toMatchObject({ status: 1, stderr: expect.stringContaining("sees the pod's own address") });
});
