import { expect, test } from "vitest";
import { answerOf } from "./ping.ts";

test.each([
  ["PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.", undefined],
  ["64 bytes from 192.0.2.1: icmp_seq=1 ttl=64 time=0.301 ms", true],
  ["64 bytes from 2001:db8::1: icmp_seq=7 ttl=61 time=12 ms", true],
  ["64 bytes from 192.0.2.1: icmp_seq=2 ttl=64 time<1 ms", true],
  ["no answer yet for icmp_seq=3", false],
  ["From 192.0.2.9 icmp_seq=3 Destination Host Unreachable", undefined],
  ["64 bytes from 192.0.2.1: icmp_seq=4 ttl=64 time=0.3 ms (DUP!)", true],
  ["", undefined],
])("%j says of a request: %s", (line, expected) => {
  expect(answerOf(line)).toBe(expected);
});
