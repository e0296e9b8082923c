import { expect, test } from "vitest";
import { FakeClock } from "../testing/fake-clock.ts";
import type { RequestOptions, Transport } from "../transport/transport.ts";
import { fencedBy, Lead } from "./lead.ts";

test("a lead lasts from renewal to renewal, counted from when each was begun", () => {
  const clock = new FakeClock();
  const lead = new Lead(clock.now(), 100, clock);
  clock.advance(90);
  lead.renewed(50);
  clock.advance(50);
  expect(lead.isHeld).toBe(true);
  clock.advance(10);
  expect(lead.isHeld).toBe(false);
  expect(lead.signal.aborted).toBe(true);
  lead.renewed(clock.now());
  expect(lead.isHeld).toBe(false);
});

test("a lead whose process was frozen ends by the clock, before its timer has its turn", () => {
  const clock = new FakeClock();
  const lead = new Lead(0, 100, { now: () => clock.now() + 1_000, after: () => () => undefined });
  expect(lead.signal.aborted).toBe(false);
  expect(lead.isHeld).toBe(false);
  expect(lead.signal.aborted).toBe(true);
});

test("once a lead has ended its writes are not sent, and reads are", async () => {
  const sent: string[] = [];
  const transport: Transport = {
    request: async <T>({ method, beforeSend }: RequestOptions) => {
      beforeSend?.();
      sent.push(method);
      return {} as T;
    },
    stream: () => Promise.reject(new Error("no stream was asked for")),
    close: () => undefined,
  };
  const lead = new Lead(0, 100, new FakeClock());
  const fenced = fencedBy(() => lead.isHeld, transport);
  await fenced.request({ method: "PATCH", path: "/" });
  lead.end("enough");
  for (const method of ["POST", "PUT", "PATCH", "DELETE"] as const) {
    await expect(fenced.request({ method, path: "/" })).rejects.toMatchObject({ code: "NotLeading" });
  }
  await fenced.request({ method: "GET", path: "/" });
  expect(sent).toEqual(["PATCH", "GET"]);
});
