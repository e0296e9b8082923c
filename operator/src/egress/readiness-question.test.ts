import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { describe, expect, test } from "vitest";
import { askWhyNotReady } from "./readiness-question.ts";

const never = new AbortController().signal;

/** What a gateway that answers so is understood to say. */
async function reasonOf(listener: RequestListener): Promise<string | undefined> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await askWhyNotReady("127.0.0.1", never, (server.address() as AddressInfo).port);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const answer =
  (text: string | Buffer, status = 503, type = "text/plain; charset=utf-8"): RequestListener =>
  (request, response) => {
    response.writeHead(request.url === "/readyz" ? status : 404, { "content-type": type }).end(text);
  };

describe("a gateway that is not ready", () => {
  test("says why, in one line", async () => {
    expect(await reasonOf(answer("net.ipv4.ip_forward is 0\nslices are not listed yet\n"))).toBe(
      "net.ipv4.ip_forward is 0; slices are not listed yet",
    );
  });

  test("shows nothing but text, and no more than fits", async () => {
    expect(await reasonOf(answer("a\u001b[31mb\u0000c\u202ed\r\n"))).toBe("a [31mb c d");
    expect(await reasonOf(answer(Buffer.from([0x61, 0xff, 0xfe, 0x62])))).toBe("a b");
    expect(await reasonOf(answer("x".repeat(1_000_000)))).toBe("x".repeat(512));
  });

  test("that answers without end is not listened to for long", async () => {
    const endless: RequestListener = (_, response) => {
      response.writeHead(503, { "content-type": "text/plain" });
      const more = () => {
        while (response.write("y".repeat(65_536)));
        response.once("drain", more);
      };
      more();
    };
    expect(await reasonOf(endless)).toBe("y".repeat(512));
  });

  test.each([
    ["is ready after all", answer("ok\n", 200)],
    ["is sent elsewhere", answer("http://169.254.169.254/", 302)],
    ["answers with another kind of text", answer("<b>no</b>", 503, "text/html")],
    ["says nothing", answer("\n \n")],
  ] as [string, RequestListener][])("answers without a reason where it %s", async (_, listener) => {
    expect(await reasonOf(listener)).toBe("");
  });

  test.each([
    ["has headers without end", answer("x", 503, `text/plain; ${"x".repeat(10_000)}`)],
    ["ends the connection", (request: { destroy(): void }) => request.destroy()],
  ] as [string, RequestListener][])("does not answer where it %s", async (_, listener) => {
    expect(await reasonOf(listener)).toBeUndefined();
  });

  test("has no reason where nobody answers, or nobody says anything", async () => {
    const silent = createTcpServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const { port } = silent.address() as AddressInfo;
    const stop = AbortSignal.timeout(200);
    expect(await askWhyNotReady("127.0.0.1", stop, port)).toBeUndefined();
    silent.close();
    expect(await askWhyNotReady("127.0.0.1", never, port)).toBeUndefined();
    expect(await askWhyNotReady("no-address", AbortSignal.abort(), port)).toBeUndefined();
  });
});
