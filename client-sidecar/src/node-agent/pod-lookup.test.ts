import { KubeError, type Transport } from "@egress-nat/kube";
import { expect, test } from "vitest";
import { podLookup } from "./pod-lookup.ts";

const refusing = (code: string, status: number) =>
  podLookup({
    request: () =>
      Promise.reject(new KubeError(`pods "client" is ${code}`, { code, status, retryable: false })),
  } as unknown as Transport);

const POD = { namespace: "default", name: "client" };

test("an agent that may not read pods names the value of the chart that lets it", async () => {
  const lookUp = refusing("Forbidden", 403)(POD, AbortSignal.timeout(1000));
  await expect(lookUp).rejects.toMatchObject({
    name: "CniError",
    message: expect.stringContaining("pod default/client"),
    details: expect.stringContaining("nodeAgent.runtimePassesAnnotations"),
  });
});

test("any other refusal is the API server's own", async () => {
  await expect(refusing("NotFound", 404)(POD, AbortSignal.timeout(1000))).rejects.toMatchObject({
    code: "NotFound",
  });
});
