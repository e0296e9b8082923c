import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { FakeClock } from "../testing/fake-clock.ts";
import { silentLogger } from "../testing/silent-logger.ts";
import { abortable } from "../timing/abortable.ts";
import type { Transport } from "../transport/transport.ts";
import { EventRecorder } from "./event-recorder.ts";

const never = new Promise<never>(() => undefined);

test("an API server that does not answer holds up the end of a program for a second, whatever waits", async () => {
  const transport: Transport = {
    request: ({ signal }) => (signal === undefined ? never : abortable(never, signal)),
    stream: () => never,
    close: () => undefined,
  };
  const clock = new FakeClock();
  const options = { transport, component: "test.example/gateway", instance: "gateway-1", clock };
  const recorder = new EventRecorder({ ...options, logger: silentLogger });
  const regarding = { apiVersion: "v1", kind: "Pod", namespace: "default", name: "gateway-1" };
  for (const message of ["at the start", "at the end"]) {
    recorder.record({ regarding, type: "Normal", reason: "Drain", action: "Drain", message });
  }
  let closed = false;
  const closing = recorder.close().then(() => {
    closed = true;
  });
  clock.advance(999);
  await setImmediate();
  expect(closed).toBe(false);
  clock.advance(1);
  await closing;
});
