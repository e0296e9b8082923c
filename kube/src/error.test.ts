import { expect, test } from "vitest";
import { ifFound, refusalError } from "./error.ts";

const request = "GET /api/v1/pods";

test("an expired list and an expired watch have the same code", () => {
  const list = refusalError({ request, status: 410, body: { reason: "Expired", message: "too old" } });
  const watch = refusalError({ request, status: 410, body: { reason: "Gone", message: "too old" } });
  expect([list.code, watch.code]).toEqual(["Gone", "Gone"]);
});

test("the message names the request and what the apiserver said", () => {
  const error = refusalError({
    request,
    status: 403,
    body: { reason: "Forbidden", message: "cannot list pods" },
  });
  expect(error.message).toBe("GET /api/v1/pods: 403 Forbidden: cannot list pods");
});

test("a proxy's page in place of an answer becomes part of the message", () => {
  const error = refusalError({ request, status: 502, body: "<h1>no upstream</h1>\n" });
  expect(error).toMatchObject({ code: "BadGateway", retryable: true });
  expect(error.message).toContain("<h1>no upstream</h1>");
});

test("a conflict is worth another try, an object that exists already is not", () => {
  const conflict = refusalError({ request, status: 409, body: { reason: "Conflict" } });
  const exists = refusalError({ request, status: 409, body: { reason: "AlreadyExists" } });
  expect([conflict.retryable, exists.retryable]).toEqual([true, false]);
});

test.each([
  { retryAfter: "3", body: {}, expected: 3_000 },
  { retryAfter: undefined, body: { details: { retryAfterSeconds: 2 } }, expected: 2_000 },
  { retryAfter: "soon", body: {}, expected: undefined },
  { retryAfter: undefined, body: {}, expected: undefined },
])("Retry-After $retryAfter with $body is $expected ms", ({ retryAfter, body, expected }) => {
  expect(refusalError({ request, status: 429, body, retryAfter }).retryAfterMs).toBe(expected);
});

test("Retry-After may be a date", () => {
  const retryAfter = new Date(Date.now() + 10_000).toUTCString();
  const error = refusalError({ request, status: 503, body: {}, retryAfter });
  expect(error.retryAfterMs).toBeGreaterThan(8_000);
  expect(error.retryAfterMs).toBeLessThanOrEqual(10_000);
});

test("what is not there is no error for who asks whether it is", async () => {
  const refuse = (status: number) => Promise.reject(refusalError({ request, status, body: {} }));
  expect(await ifFound(Promise.resolve("there"))).toBe("there");
  expect(await ifFound(refuse(404))).toBeUndefined();
  await expect(ifFound(refuse(403))).rejects.toMatchObject({ code: "Forbidden" });
});
