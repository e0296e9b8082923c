import dgram from "node:dgram";
import { EventEmitter } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { HeartbeatProber } from "./prober.ts";

const { createSocket } = dgram;
const closed = vi.fn();

function makeSocketsBy(make: unknown): void {
  Object.assign(dgram, { createSocket: make });
  syncBuiltinESMExports();
}

// A kernel without IPv6 (ipv6.disable=1) cannot be had here.
beforeEach(() =>
  makeSocketsBy(() => {
    const socket = new EventEmitter();
    const bind = () => setImmediate(() => socket.emit("error", new Error("bind EAFNOSUPPORT ::")));
    return Object.assign(socket, { bind, close: closed });
  }),
);
afterEach(() => makeSocketsBy(createSocket));

test("a node that has no IPv6 is told so each time, and keeps no socket of it", async () => {
  const prober = new HeartbeatProber();
  for (const times of [1, 2]) {
    await expect(prober.probe("2001:db8::1", 5556, [], { timeoutMs: 100 })).rejects.toThrow("EAFNOSUPPORT");
    expect(closed).toHaveBeenCalledTimes(times);
  }
});
