import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test, vi } from "vitest";
import { z } from "zod";
import { createNamespace } from "../testing/namespace.ts";
import { silentLogger } from "../testing/silent-logger.ts";
import { TcpProxy } from "../testing/tcp-proxy.ts";
import type { Credentials } from "./credentials.ts";
import { createTransport } from "./https-transport.ts";
import { inClusterCredentials } from "./in-cluster-credentials.ts";
import { loadCredentials } from "./load-credentials.ts";
import type { Transport } from "./transport.ts";

let credentials: Credentials;
let admin: Transport;
let namespace: string;

beforeAll(async () => {
  credentials = await loadCredentials({ kubeconfig: inject("kubeconfig") });
  admin = createTransport({ credentials, logger: silentLogger });
  namespace = await createNamespace(admin, "transport");
});

afterAll(() => admin.close());

/** Of somebody else; it is valid for a hundred years. */
const OTHER_AUTHORITY = `-----BEGIN CERTIFICATE-----
MIIBdzCCAR2gAwIBAgIUGd0Sl/6DWhlqJ9s/fd55nDZi7YMwCgYIKoZIzj0EAwIw
EDEOMAwGA1UEAwwFb3RoZXIwIBcNMjYxMTIxMTMyNTUxWhgPMjEyNjEwMjgxMzI1
NTFaMBAxDjAMBgNVBAMMBW90aGVyMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
crEwyROhALCleiQ9fH4+psBNh4SGfsNcThw11NUFhop+LQl/SgQ5D7YQKW5fKTXG
5WWtf/vdDJLMo9gCx0MmAKNTMFEwHQYDVR0OBBYEFK9karXLWq9WEuGwvyTA9FoU
3YdNMB8GA1UdIwQYMBaAFK9karXLWq9WEuGwvyTA9FoU3YdNMA8GA1UdEwEB/wQF
MAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIgGWvUgmcJgO46l+yR9TnDkTGL51siL55Y
b+8Ou1dxo4MCIQCw4KAOjNCxxe9IpZSReBLQrsuhVAmGZ8ApM8kOBvEgfQ==
-----END CERTIFICATE-----`;

const VERSION = { method: "GET", path: "/version" } as const;

test("200 requests one after the other share one connection", async () => {
  await using proxy = await TcpProxy.to(credentials.server);
  const transport = createTransport({ credentials: proxy.reach(credentials), logger: silentLogger });
  for (let i = 0; i < 200; i += 1) await transport.request(VERSION);
  expect(proxy.connections).toBe(1);
  transport.close();
});

test("a burst of 200 requests makes a bounded number of connections", async () => {
  await using proxy = await TcpProxy.to(credentials.server);
  const transport = createTransport({ credentials: proxy.reach(credentials), logger: silentLogger });
  await Promise.all(Array.from({ length: 200 }, () => transport.request(VERSION)));
  expect(proxy.connections).toBeLessThanOrEqual(16);
  transport.close();
});

test("a request over a connection that carries nothing any more fails in time, and the next one succeeds", async () => {
  await using proxy = await TcpProxy.to(credentials.server);
  const transport = createTransport({ credentials: proxy.reach(credentials), logger: silentLogger });
  await Promise.all([transport.request(VERSION), transport.request(VERSION), transport.request(VERSION)]);
  proxy.freeze();
  await expect(transport.request({ ...VERSION, timeoutMs: 500 })).rejects.toMatchObject({
    code: "Timeout",
    retryable: true,
  });
  await expect(transport.request({ ...VERSION, timeoutMs: 5_000 })).resolves.toHaveProperty("gitVersion");
  transport.close();
});

test("an aborted request ends at once, with the reason of the one who aborted it", async () => {
  await using proxy = await TcpProxy.to(credentials.server);
  const transport = createTransport({ credentials: proxy.reach(credentials), logger: silentLogger });
  await transport.request(VERSION);
  proxy.freeze();
  const controller = new AbortController();
  const request = transport.request({ ...VERSION, signal: controller.signal });
  controller.abort(new Error("enough"));
  await expect(request).rejects.toThrow("enough");
  transport.close();
});

test("what the apiserver refuses becomes an error with its reason", async () => {
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const create = (name: string) => admin.request({ method: "POST", path, body: { metadata: { name } } });
  await create("one");
  await expect(create("one")).rejects.toMatchObject({ code: "AlreadyExists", status: 409, retryable: false });
  await expect(create("No Name")).rejects.toMatchObject({ code: "Invalid", status: 422 });
  await expect(admin.request({ method: "GET", path: `${path}/two` })).rejects.toMatchObject({
    code: "NotFound",
    message: expect.stringContaining('configmaps "two" not found'),
  });
});

/** The files of a ServiceAccount, laid out as kubelet does it: replaced together, by the swap of one symlink. */
let directory: string;
let generation: number;
beforeEach(async () => {
  generation = 0;
  directory = await mkdtemp(join(tmpdir(), "service-account-"));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await rm(directory, { recursive: true });
});

async function project(files: { token: string; ca: string }): Promise<void> {
  generation += 1;
  const data = join(directory, `..${generation}`);
  await mkdir(data);
  await writeFile(join(data, "token"), files.token);
  await writeFile(join(data, "ca.crt"), files.ca);
  await symlink(`..${generation}`, join(directory, "..next"));
  await rename(join(directory, "..next"), join(directory, "..data"));
  if (generation > 1) return;
  for (const name of ["token", "ca.crt"]) await symlink(join("..data", name), join(directory, name));
}

async function serviceAccountToken(name: string): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  await admin.request({ method: "POST", path, body: { metadata: { name } } });
  const answer = await admin.request({ method: "POST", path: `${path}/${name}/token`, body: { spec: {} } });
  return z.object({ status: z.object({ token: z.string() }) }).parse(answer).status.token;
}

async function whoAmI(transport: Transport): Promise<string> {
  const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
  const answer = await transport.request({ method: "POST", path, body: {} });
  const Review = z.object({ status: z.object({ userInfo: z.object({ username: z.string() }) }) });
  return Review.parse(answer).status.userInfo.username.split(":").at(-1) ?? "";
}

async function authority(): Promise<string> {
  return String((await credentials.read()).tls.ca);
}

function inCluster(): Transport {
  const ours = inClusterCredentials(credentials.server, directory);
  return createTransport({ credentials: ours, logger: silentLogger });
}

test("a token that was replaced is taken up after a while, without a failure", async () => {
  const ca = await authority();
  await project({ token: await serviceAccountToken("anna"), ca });
  const transport = inCluster();
  expect(await whoAmI(transport)).toBe("anna");
  await project({ token: await serviceAccountToken("berta"), ca });
  expect(await whoAmI(transport)).toBe("anna");
  const now = performance.now();
  vi.spyOn(performance, "now").mockImplementation(() => now + 31_000);
  expect(await whoAmI(transport)).toBe("berta");
  transport.close();
});

test("a token that is refused is read again at once, and the request succeeds", async () => {
  const ca = await authority();
  await project({ token: "expired", ca });
  const ours = inClusterCredentials(credentials.server, directory);
  const transport = createTransport({ credentials: ours, logger: silentLogger });
  await ours.read();
  await project({ token: await serviceAccountToken("carla"), ca });
  expect(await whoAmI(transport)).toBe("carla");
  transport.close();
});

test("a token that is refused and was not replaced is an error", async () => {
  await project({ token: "expired", ca: await authority() });
  const transport = inCluster();
  await expect(whoAmI(transport)).rejects.toMatchObject({ code: "Unauthorized", status: 401 });
  transport.close();
});

test("an authority that was replaced is taken up after one failure", async () => {
  const token = await serviceAccountToken("dora");
  await project({ token, ca: OTHER_AUTHORITY });
  const transport = inCluster();
  await expect(whoAmI(transport)).rejects.toMatchObject({ code: "Unreachable", retryable: true });
  await project({ token, ca: await authority() });
  expect(await whoAmI(transport)).toBe("dora");
  transport.close();
});

test("without the ServiceAccount's files it says which one is missing", async () => {
  await expect(whoAmI(inCluster())).rejects.toMatchObject({
    code: "InvalidCredentials",
    message: expect.stringContaining(join(directory, "token")),
  });
});
