import { type EgressClientSlice, type GatewayReport, EgressClientSlice as Slice } from "@egress-nat/crds";
import { KubeError } from "@egress-nat/kube";
import { describe, expect, it } from "vitest";
import { askBy } from "../gateways/health.ts";
import type { ClientRecord } from "../records/schema.ts";
import { clientRecord } from "../testing/client-record.ts";
import { egress } from "../testing/egress.ts";
import { gateway } from "../testing/gateway.ts";
import { SliceWriter } from "./writer.ts";

const NAT = { namespace: "internet", name: "nat" };

/** An apiserver that keeps one slice, and answers when it is told to. */
class FakeApi {
  slice: EgressClientSlice | undefined;
  writes = 0;
  failure: Error | undefined;
  answerIsLost = false;
  #gate: PromiseWithResolvers<void> | undefined;

  hold(): () => void {
    this.#gate = Promise.withResolvers<void>();
    return this.#gate.resolve;
  }

  async apply(desired: object): Promise<EgressClientSlice> {
    this.writes++;
    await this.#gate?.promise;
    if (this.failure !== undefined) throw this.failure;
    const { uid = `uid-${this.writes}`, generation = 0 } = this.slice?.metadata ?? {};
    const { metadata, ...rest } = desired as EgressClientSlice;
    this.slice = Slice.parse({ ...rest, metadata: { ...metadata, uid, generation: generation + 1 } });
    if (this.answerIsLost) throw new Error("answer was lost");
    return this.slice;
  }

  async delete(): Promise<void> {
    this.writes++;
    if (this.slice === undefined) throw new KubeError("not found", { code: "NotFound", retryable: false });
    this.slice = undefined;
  }
}

function setUp(options: { readonly egress?: ReturnType<typeof egress> | undefined } = { egress: egress() }) {
  const api = new FakeApi();
  const records: ClientRecord[] = [];
  const suspects: GatewayReport[] = [];
  const seen: { slice?: EgressClientSlice | undefined } = {};
  const writer = new SliceWriter({
    client: api,
    nodeName: "node-1",
    registry: { ofEgress: () => records },
    view: { egress: () => options.egress },
    reports: () => suspects,
    seen: () => seen.slice,
  });
  return { api, records, suspects, seen, writer };
}

function client(number: number): ClientRecord {
  const pod = { namespace: "apps", name: `web-${number}`, uid: `u-${number}` };
  return clientRecord({ containerId: `c${number}`, pod, addresses: [`10.244.0.${number}`] });
}

describe("the slice writer", () => {
  it("writes once for all who ask while a write is under way", async () => {
    const { api, records, writer } = setUp();
    records.push(client(100));
    const release = api.hold();
    const first = writer.write(NAT);
    const others = Array.from({ length: 50 }, (_, index) => {
      records.push(client(index + 1));
      return writer.write(NAT);
    });
    release();
    await first;
    const versions = await Promise.all(others);
    expect(api.writes).toBe(2);
    expect(new Set(versions)).toEqual(new Set([{ uid: "uid-1", generation: 2 }]));
    expect(api.slice?.clients).toHaveLength(51);
  });

  it("tells who asks during a write the version that holds his client", async () => {
    const { api, records, writer } = setUp();
    records.push(client(1));
    const release = api.hold();
    const first = writer.write(NAT);
    records.push(client(2));
    const second = writer.write(NAT);
    release();
    expect(await first).toEqual({ uid: "uid-1", generation: 1 });
    expect(await second).toEqual({ uid: "uid-1", generation: 2 });
  });

  it("writes nothing where the slice is as it should be", async () => {
    const { api, records, seen, writer } = setUp();
    records.push(client(1));
    await writer.write(NAT);
    seen.slice = api.slice;
    expect(await writer.write(NAT)).toEqual({ uid: "uid-1", generation: 1 });
    expect(api.writes).toBe(1);
    expect(writer.isInOrder(NAT)).toBe(true);
  });

  it("does not trust a watch that is late", async () => {
    const { api, records, seen, writer } = setUp();
    records.push(client(1));
    await writer.write(NAT);
    seen.slice = api.slice;
    records.push(client(2));
    await writer.write(NAT);
    records.pop();
    expect(await writer.write(NAT)).toEqual({ uid: "uid-1", generation: 3 });
    expect(api.slice?.clients).toHaveLength(1);
  });

  it("goes on after a failed write", async () => {
    const { api, records, writer } = setUp();
    records.push(client(1));
    api.failure = new Error("apiserver is away");
    await expect(writer.write(NAT)).rejects.toThrow("away");
    api.failure = undefined;
    expect(await writer.write(NAT)).toMatchObject({ generation: 1 });
  });

  it("empties the slice of an Egress without clients, and makes none that was never there", async () => {
    const { api, records, writer } = setUp();
    expect(await writer.write(NAT)).toBeUndefined();
    records.push(client(1));
    await writer.write(NAT);
    records.pop();
    expect(await writer.write(NAT)).toEqual({ uid: "uid-1", generation: 2 });
    expect(api.slice?.clients).toEqual([]);
  });

  it("deletes the slice of an Egress that is gone", async () => {
    const options: { egress?: ReturnType<typeof egress> } = { egress: egress() };
    const { api, records, writer } = setUp(options);
    records.push(client(1));
    await writer.write(NAT);
    delete options.egress;
    expect(await writer.write(NAT)).toEqual({ uid: "uid-1", generation: undefined });
    expect(await writer.write(NAT)).toEqual({ uid: "uid-1", generation: undefined });
    expect(api.slice).toBeUndefined();
  });

  it("deletes a slice of which it only knows that it may have made it, and takes no gateway's word for its end", async () => {
    const options: { egress?: ReturnType<typeof egress> } = { egress: egress() };
    const { api, records, writer } = setUp(options);
    records.push(client(1));
    api.answerIsLost = true;
    await expect(writer.write(NAT)).rejects.toThrow("answer was lost");
    delete options.egress;
    const version = await writer.write(NAT);
    expect(api.slice).toBeUndefined();
    const probe = async () => new Map<string, string>(); // a gateway that knows no slice
    expect(await askBy({ probe })(gateway(), version ?? expect.fail(), AbortSignal.timeout(1_000))).toBe(
      "behind",
    );
  });

  it("has a slice that an earlier release has written say how many clients it has", async () => {
    const { api, records, seen, writer } = setUp();
    records.push(client(1));
    await writer.write(NAT);
    const { clientCount: _, ...earlier } = api.slice ?? expect.fail();
    seen.slice = earlier;
    expect(writer.isInOrder(NAT)).toBe(false);
    await writer.write(NAT);
    expect(api.writes).toBe(2);
    expect(api.slice?.clientCount).toBe(1);
  });

  it("adds what is to be reported of gateways, and takes it back", async () => {
    const { api, records, suspects, seen, writer } = setUp();
    records.push(client(1));
    await writer.write(NAT);
    expect(api.slice).not.toHaveProperty("suspects");
    seen.slice = api.slice;
    suspects.push({ gateway: "nat-1", state: "Suspect", since: "2026-01-02T03:04:05Z" });
    expect(writer.isInOrder(NAT)).toBe(false);
    await writer.write(NAT);
    expect(api.slice?.suspects).toEqual(suspects);
    seen.slice = api.slice;
    expect(writer.isInOrder(NAT)).toBe(true);
    suspects.pop();
    await writer.write(NAT);
    expect(api.slice).not.toHaveProperty("suspects");
  });

  it("sees that a slice was changed or deleted by somebody else", async () => {
    const { api, records, seen, writer } = setUp();
    records.push(client(1));
    expect(writer.isInOrder(NAT)).toBe(false);
    await writer.write(NAT);
    expect(writer.isInOrder(NAT)).toBe(false);
    const written = api.slice;
    seen.slice = written && { ...written, clients: [], metadata: { ...written.metadata, generation: 2 } };
    expect(writer.isInOrder(NAT)).toBe(false);
  });
});
