import type { EgressClientSlice, GatewayReport } from "@egress-nat/crds";
import { KubeError } from "@egress-nat/kube";
import { describe, expect, it } from "vitest";
import { askBy } from "../gateways/health.ts";
import type { Gateway } from "../gateways/view.ts";
import type { ClientRecord } from "../records/schema.ts";
import { clientRecord } from "../testing/client-record.ts";
import { egress } from "../testing/egress.ts";
import { FakeSliceApi } from "../testing/fake-slice-api.ts";
import { gateway } from "../testing/gateway.ts";
import { SliceWriter } from "./writer.ts";

const NAT = { namespace: "internet", name: "nat" };

function setUp(options: { readonly egress?: ReturnType<typeof egress> | undefined } = { egress: egress() }) {
  const api = new FakeSliceApi();
  const records: ClientRecord[] = [];
  const suspects: GatewayReport[] = [];
  const seen: { slice?: EgressClientSlice | undefined } = {};
  const gateways: Gateway[] = [];
  const writer = new SliceWriter({
    client: api,
    nodeName: "node-1",
    registry: { ofEgress: () => records },
    view: { egress: () => options.egress, gateways: () => gateways },
    reports: () => suspects,
    seen: () => seen.slice,
  });
  return { api, records, suspects, seen, gateways, writer };
}

function client(number: number): ClientRecord {
  const pod = { namespace: "apps", name: `web-${number}`, uid: `u-${number}` };
  return clientRecord({ containerId: `c${number}`, pod, addresses: [`10.244.0.${number}`] });
}

/** A slice of one client that was written, and is seen. */
async function seenSlice() {
  const parts = setUp();
  parts.records.push(client(1));
  await parts.writer.write(NAT);
  parts.seen.slice = parts.api.slice;
  return parts;
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

  it("leaves out a client whose UID a slice does not take: it would be refused with all others in it", async () => {
    const { api, records, writer } = setUp();
    const pod = { namespace: "apps", name: "static", uid: "web 1" };
    records.push(client(1), clientRecord({ containerId: "c2", pod, addresses: ["10.244.0.2"] }));
    await writer.write(NAT);
    expect(api.slice?.clients).toMatchObject([{ name: "web-1" }]);
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
    const { api, writer } = await seenSlice();
    expect(await writer.write(NAT)).toEqual({ uid: "uid-1", generation: 1 });
    expect(api.writes).toBe(1);
    expect(writer.isInOrder(NAT)).toBe(true);
  });

  it("does not trust a watch that is late", async () => {
    const { api, records, writer } = await seenSlice();
    records.push(client(2));
    await writer.write(NAT);
    records.pop();
    expect(await writer.write(NAT)).toEqual({ uid: "uid-1", generation: 3 });
    expect(api.slice?.clients).toHaveLength(1);
  });

  it("takes a slice that was made anew for an older one only until the watch tells of it", async () => {
    const { api, records, seen, writer } = setUp();
    records.push(client(1));
    await writer.write(NAT);
    const former = api.slice;
    api.slice = undefined; // deleted by somebody else
    records.push(client(2));
    await writer.write(NAT);
    seen.slice = former;
    expect(writer.isInOrder(NAT)).toBe(true);
    seen.slice = api.slice;
    expect(writer.isInOrder(NAT)).toBe(true);
  });

  it("sees that somebody else has put another slice in the place of the one that it wrote", async () => {
    const { api, records, seen, writer } = setUp();
    records.push(client(1));
    const { metadata, ...rest } = await writer.write(NAT).then(() => api.slice ?? expect.fail());
    seen.slice = { ...rest, clients: [], metadata: { ...metadata, uid: "other", resourceVersion: "2" } };
    expect(writer.isInOrder(NAT)).toBe(false);
  });

  it("deletes, of an Egress that is gone, the slice that is there, whichever one it wrote", async () => {
    const options: { egress?: ReturnType<typeof egress> } = { egress: egress() };
    const { api, records, seen, writer } = setUp(options);
    records.push(client(1));
    const { metadata, ...rest } = await writer.write(NAT).then(() => api.slice ?? expect.fail());
    api.slice = { ...rest, metadata: { ...metadata, uid: "other", resourceVersion: "2" } };
    seen.slice = api.slice;
    delete options.egress;
    expect(await writer.write(NAT)).toEqual({ uid: "other", generation: undefined });
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
    expect(writer.isInOrder(NAT)).toBe(true);
    records.push(client(1));
    await writer.write(NAT);
    records.pop();
    expect(await writer.write(NAT)).toEqual({ uid: "uid-1", generation: 2 });
    expect(api.slice?.clients).toEqual([]);
  });

  it("makes one without clients for who asks which version has let go of them: gateways may know one that was deleted", async () => {
    const { api, writer } = setUp();
    expect(await writer.write(NAT)).toEqual({ uid: "uid-1", generation: 1 });
    expect(api.slice).toMatchObject({ clients: [], clientCount: 0 });
  });

  it("makes none where there is no Egress", async () => {
    const { api, writer } = setUp({ egress: undefined });
    expect(await writer.write(NAT)).toBeUndefined();
    expect(api.writes).toBe(0);
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
    expect(writer.isInOrder(NAT)).toBe(true);
    const probe = async () => new Map<string, string>(); // a gateway that knows no slice
    expect(await askBy({ probe })(gateway(), version ?? expect.fail(), AbortSignal.timeout(1_000))).toBe(
      "behind",
    );
  });

  it("writes again after an answer was lost, whatever is seen: gateways may trust whom that write named", async () => {
    const { api, records, seen, writer } = await seenSlice();
    records.push(client(2));
    api.answerIsLost = true;
    await expect(writer.write(NAT)).rejects.toThrow("answer was lost");
    records.pop();
    expect(writer.isInOrder(NAT)).toBe(false);
    api.answerIsLost = false;
    expect(await writer.write(NAT)).toEqual({ uid: "uid-1", generation: 3 });
    expect(api.slice?.clients).toHaveLength(1);
    seen.slice = api.slice;
    expect(writer.isInOrder(NAT)).toBe(true);
  });

  it("does not where the API server has refused it: what is seen is what there is", async () => {
    const { api, records, writer } = await seenSlice();
    records.push(client(2));
    api.failure = new KubeError("PATCH: 403", { code: "Forbidden", status: 403, retryable: false });
    await expect(writer.write(NAT)).rejects.toThrow("403");
    records.pop();
    expect(writer.isInOrder(NAT)).toBe(true);
    expect(await writer.write(NAT)).toEqual({ uid: "uid-1", generation: 1 });
    expect(api.writes).toBe(2);
  });

  it("forgets an Egress once it is gone with its gateways and its slice, as seen", async () => {
    const options: { egress?: ReturnType<typeof egress> } = { egress: egress() };
    const { api, records, seen, gateways, writer } = setUp(options);
    records.push(client(1));
    await writer.write(NAT);
    const former = api.slice;
    writer.sweep();
    delete options.egress;
    gateways.push(gateway());
    const deleted = { uid: "uid-1", generation: undefined };
    expect(await writer.write(NAT)).toEqual(deleted);
    writer.sweep();
    expect(await writer.write(NAT)).toEqual(deleted);
    records.pop();
    gateways.pop();
    seen.slice = former;
    writer.sweep();
    expect(writer.isInOrder(NAT)).toBe(true);
    seen.slice = undefined;
    writer.sweep();
    const { writes } = api;
    expect(await writer.write(NAT)).toBeUndefined();
    expect(api.writes).toBe(writes);
  });

  it("does not forget that it may be making a slice right now", async () => {
    const options: { egress?: ReturnType<typeof egress> } = { egress: egress() };
    const { api, records, writer } = setUp(options);
    records.push(client(1));
    const release = api.hold();
    const writing = writer.write(NAT);
    delete options.egress;
    writer.sweep();
    api.answerIsLost = true;
    release();
    await expect(writing).rejects.toThrow("answer was lost");
    await writer.write(NAT);
    expect(api.slice).toBeUndefined();
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
