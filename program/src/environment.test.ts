import { expect, test } from "vitest";
import { z } from "zod";
import { ConfigurationError, parseEnvironment } from "./environment.ts";

const Environment = z.object({
  NODE_NAME: z.string().describe("the node's name, from spec.nodeName"),
  PORT: z.coerce.number().int().max(65535).default(8080),
  CLUSTER_RANGES: z
    .string()
    .transform((list) => list.split(","))
    .optional(),
});

test("variables become a typed configuration, with its defaults", () => {
  expect(parseEnvironment(Environment, { NODE_NAME: "n1", CLUSTER_RANGES: "a,b", HOME: "/root" })).toEqual({
    NODE_NAME: "n1",
    PORT: 8080,
    CLUSTER_RANGES: ["a", "b"],
  });
});

test("a variable that is set to nothing counts as absent", () => {
  expect(parseEnvironment(Environment, { NODE_NAME: "n1", CLUSTER_RANGES: "", PORT: "" })).toEqual({
    NODE_NAME: "n1",
    PORT: 8080,
  });
});

test("the error names each variable that is wrong, what it holds and what belongs there", () => {
  const parse = () => parseEnvironment(Environment, { PORT: "eighty" });
  expect(parse).toThrow(ConfigurationError);
  expect(parse).toThrow("NODE_NAME is not set (the node's name, from spec.nodeName)");
  expect(parse).toThrow('PORT "eighty": ');
});
