import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { inClusterServer } from "./in-cluster-credentials.ts";
import { loadCredentials } from "./load-credentials.ts";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "credentials-"));
});

afterAll(() => rm(folder, { recursive: true }));

afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

async function kubeconfig(cluster: object, user: object): Promise<string> {
  const path = join(folder, "kubeconfig");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster }],
    users: [{ name: "u", user }],
    contexts: [{ name: "here", context: { cluster: "c", user: "u" } }],
    "current-context": "here",
  };
  await writeFile(path, JSON.stringify(config));
  return path;
}

const server = "https://api.example.com:6443";

test("a kubeconfig's token becomes a bearer token", async () => {
  const credentials = await loadCredentials({ kubeconfig: await kubeconfig({ server }, { token: "abc" }) });
  expect(credentials.server.host).toBe("api.example.com:6443");
  expect(await credentials.read()).toEqual({ tls: {}, authorization: "Bearer abc" });
});

test("a kubeconfig's user and password become basic authentication", async () => {
  const user = { username: "anna", password: "secret" };
  const credentials = await loadCredentials({ kubeconfig: await kubeconfig({ server }, user) });
  expect((await credentials.read()).authorization).toBe(`Basic ${btoa("anna:secret")}`);
});

test("client certificate and CA are read again from their files, and are one object while they are the same", async () => {
  const [ca, cert, key] = [join(folder, "ca"), join(folder, "cert"), join(folder, "key")];
  await Promise.all([writeFile(ca, "CA 1"), writeFile(cert, "CERT 1"), writeFile(key, "KEY 1")]);
  const user = { "client-certificate": cert, "client-key": key };
  const path = await kubeconfig({ server, "certificate-authority": ca }, user);
  const credentials = await loadCredentials({ kubeconfig: path });
  const first = await credentials.read();
  expect(String(first.tls.cert)).toBe("CERT 1");

  credentials.invalidate();
  expect((await credentials.read()).tls).toBe(first.tls);

  await writeFile(cert, "CERT 2");
  const now = performance.now();
  vi.spyOn(performance, "now").mockImplementation(() => now + 31_000);
  expect(String((await credentials.read()).tls.cert)).toBe("CERT 2");
});

test.each([
  ["a file that does not exist", () => Promise.resolve("/nonexistent"), "cannot read /nonexistent"],
  ["a server without TLS", () => kubeconfig({ server: "http://localhost" }, {}), "must be an https URL"],
  ["a proxy", () => kubeconfig({ server, "proxy-url": "http://proxy" }, {}), "proxy-url is not supported"],
])("%s is refused in words", async (_, path, message) => {
  await expect(loadCredentials({ kubeconfig: await path() })).rejects.toMatchObject({
    code: "InvalidCredentials",
    message: expect.stringContaining(message),
  });
});

test("a context that does not exist is refused in words", async () => {
  const path = await kubeconfig({ server }, {});
  await expect(loadCredentials({ kubeconfig: path, context: "there" })).rejects.toMatchObject({
    code: "InvalidCredentials",
    message: expect.stringContaining('context "there"'),
  });
});

test("in a pod the server is that of the environment, IPv6 too", async () => {
  vi.stubEnv("KUBERNETES_SERVICE_HOST", "fd00:96::1");
  vi.stubEnv("KUBERNETES_SERVICE_PORT", "443");
  expect((await loadCredentials()).server.href).toBe("https://[fd00:96::1]/");
});

test("outside of a cluster there is no server of one", () => {
  vi.stubEnv("KUBERNETES_SERVICE_HOST", "");
  expect(inClusterServer()).toBeUndefined();
});
