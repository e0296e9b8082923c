import { expect, test } from "vitest";
import { SourceLimit } from "./source-limit.ts";

/** How many of a source's requests at one moment are answered. */
function answered(limit: SourceLimit, source: string, requests: number, nowMs: number): number {
  let count = 0;
  for (let i = 0; i < requests; i++) if (limit.admits(source, nowMs)) count++;
  return count;
}

/** Forged addresses, each used once. */
function flood(limit: SourceLimit, requests: number, nowMs: number): number {
  let count = 0;
  for (let i = 0; i < requests; i++) if (limit.admits(`forged-${nowMs}-${i}`, nowMs)) count++;
  return count;
}

const node = (index: number) => `10.0.${index >> 8}.${index & 255}`;

test("one source has 2,000 answers at once and 1,000 a second, and takes none from another", () => {
  const limit = new SourceLimit();
  expect(answered(limit, "10.0.0.1", 3_000, 0)).toBe(2_000);
  expect(answered(limit, "10.0.0.1", 3_000, 500)).toBe(500);
  expect(answered(limit, "10.0.0.2", 100, 500)).toBe(100);
});

test("agents of 1,000 nodes that ask five times a second are always answered", () => {
  const limit = new SourceLimit();
  for (let nowMs = 0; nowMs < 5_000; nowMs += 200) {
    for (let index = 0; index < 1_000; index++) expect(limit.admits(node(index), nowMs)).toBe(true);
  }
});

test("a node that starts 110 clients at once is answered", () => {
  const limit = new SourceLimit();
  for (const nowMs of [10, 30, 70, 150, 310, 560, 810, 1_060, 1_310]) {
    expect(answered(limit, node(1), 110, nowMs)).toBe(110);
  }
});

test("agents that asked before are answered while others come with ever new addresses", () => {
  const limit = new SourceLimit();
  for (let index = 0; index < 1_000; index++) limit.admits(node(index), 0);
  for (let nowMs = 200; nowMs < 5_000; nowMs += 200) {
    expect(flood(limit, 10_000, nowMs)).toBeLessThanOrEqual(nowMs === 200 ? 4_400 : 400);
    for (let index = 0; index < 1_000; index++) expect(limit.admits(node(index), nowMs)).toBe(true);
  }
});

test("all sources together have 10,000 answers a second", () => {
  const limit = new SourceLimit();
  let count = 0;
  for (let nowMs = 0; nowMs <= 1_000; nowMs += 50) {
    for (let index = 0; index < 2_000; index++) count += answered(limit, node(index), 1, nowMs);
  }
  expect(count).toBe(20_000);
});

test("agents that ask 20 times a second are always answered while pods ask without end", () => {
  const limit = new SourceLimit();
  let count = 0;
  for (let nowMs = 0; nowMs < 10_000; nowMs += 50) {
    for (let index = 0; index < 40; index++) count += answered(limit, `10.1.0.${index}`, 50, nowMs);
    for (let index = 0; index < 400; index++) expect(limit.admits(node(index), nowMs)).toBe(true);
  }
  expect(count).toBeGreaterThan(10_000);
});
