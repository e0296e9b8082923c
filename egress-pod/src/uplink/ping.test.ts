import { getEventListeners } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ping, requestOf } from "./ping.ts";

test.each([
  ["PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.", undefined],
  ["64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=0.301 ms", { number: 1, answered: true }],
  ["64 bytes from 2001:db8::1: icmp_seq=7 ttl=61 time=12 ms", { number: 7, answered: true }],
  ["64 bytes from 192.0.2.1: icmp_seq=2 ttl=64 time<1 ms", { number: 2, answered: true }],
  ["no answer yet for icmp_seq=3", { number: 3, answered: false }],
  ["From 192.0.2.9 icmp_seq=3 Destination Host Unreachable", undefined],
  ["64 bytes from 192.0.2.1: icmp_seq=4 ttl=64 time=0.3 ms (DUP!)", { number: 4, answered: true }],
  ["", undefined],
])("%j says of a request: %j", (line, expected) => {
  expect(requestOf(line)).toEqual(expected);
});

describe("the command", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "egress-nat-ping-"));
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });

  /** @param script what stands for ping(8) */
  async function requests(script: string | undefined, count: number): Promise<boolean[]> {
    if (script !== undefined) {
      writeFileSync(join(folder, "ping"), `#!/bin/sh\n${script}\n`);
      chmodSync(join(folder, "ping"), 0o755);
    }
    vi.stubEnv("PATH", script === undefined ? folder : `${folder}:${process.env.PATH}`);
    const [seen, stop]: [boolean[], AbortController] = [[], new AbortController()];
    const running = ping("192.0.2.1", (answered) => seen.push(answered), stop.signal);
    await vi.waitFor(() => expect(seen.length).toBeGreaterThanOrEqual(count));
    // That of the pause or of the command that is under way.
    expect(getEventListeners(stop.signal, "abort").length).toBeLessThanOrEqual(1);
    stop.abort();
    await running;
    return seen.slice(0, count);
  }

  const answer = (number: number) => `echo "64 bytes from 192.0.2.1: icmp_seq=${number} ttl=64 time=620 ms"`;
  const miss = (number: number) => `echo "no answer yet for icmp_seq=${number}"`;

  test("is told of each request once: an answer after its time is none, and numbers begin anew", async () => {
    const script = [miss(1), answer(1), answer(2), answer(30_000), answer(60_000), answer(0), miss(1)];
    const seen = await requests([...script, "exec sleep 60"].join("\n"), 6);
    expect(seen).toEqual([false, true, true, true, true, false]);
  });

  test("that ends, or is not there, counts as a miss each time that it is tried", async () => {
    expect(await requests("exit 2", 2)).toEqual([false, false]);
    rmSync(join(folder, "ping"));
    expect(await requests(undefined, 2)).toEqual([false, false]);
  });
});
