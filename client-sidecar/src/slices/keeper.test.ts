import type { EgressClientSlice } from "@egress-nat/crds";
import { createLogger } from "@egress-nat/program";
import { expect, it, onTestFinished, vi } from "vitest";
import type { ClientRegistry } from "../client/registry.ts";
import type { ClientRecord } from "../records/schema.ts";
import { clientRecord } from "../testing/client-record.ts";
import { egress } from "../testing/egress.ts";
import { FakeSliceApi } from "../testing/fake-slice-api.ts";
import { runInBackground } from "../testing/in-background.ts";
import { SliceKeeper } from "./keeper.ts";
import { SliceWriter } from "./writer.ts";

const NAT = { namespace: "internet", name: "nat" };

it.each([
  ["an older generation", {}],
  ["another UID", { uid: "former" }],
])("a slice that a restore of etcd has put back, of %s, is written again", async (_, restored) => {
  const api = new FakeSliceApi();
  const records: ClientRecord[] = [clientRecord({ containerId: "c1" })];
  let seen: EgressClientSlice | undefined;
  const writer = new SliceWriter({
    client: api,
    nodeName: "node-1",
    registry: { ofEgress: () => records },
    view: { egress: () => egress(), gateways: () => [] },
    reports: () => [],
    seen: () => seen,
  });
  const keeper = new SliceKeeper({
    state: { addTombstone: () => expect.fail("nobody is gone") },
    registry: {} as ClientRegistry,
    writer,
    logger: createLogger({ name: "test", level: "silent" }),
  });
  onTestFinished(runInBackground(keeper));
  await writer.write(NAT);
  const { metadata, ...backup } = api.slice ?? expect.fail();
  const pod = { namespace: "apps", name: "web-2", uid: "u-2" };
  records.push(clientRecord({ containerId: "c2", pod, addresses: ["10.244.0.6"] }));
  await writer.write(NAT);
  seen = { ...backup, metadata: { ...metadata, ...restored } };
  api.slice = seen;
  writer.forget();
  keeper.inspect(NAT);
  await vi.waitFor(() => expect(api.slice?.clients.map(({ uid }) => uid)).toEqual(["u-1", "u-2"]));
});
