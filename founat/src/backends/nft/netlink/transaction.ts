import type { PerlProgram } from "../../../kernel/perl.ts";
import type { Message } from "./messages.ts";

/**
 * Sends what it reads, and waits until the kernel has done it. Argument: the number of the last message, which the kernel
 * answers. Numbers instead of the names that kernel/netlink.ts has, because a program that follows in the same process may
 * define these: the socket is one of AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER, and 2 is NLMSG_ERROR.
 */
const PROGRAM = String.raw`
use strict;
use warnings;
my $last = shift @ARGV;
my $batch = do { local $/; pack 'H*', <STDIN> };
socket my $socket, 16, 3, 12 or die "socket: $!\n";
defined send $socket, $batch, 0 or die "send: $!\n";
ANSWERS: while (1) {
  defined recv $socket, my $answers, 1 << 16, 0 or die "recv: $!\n";
  for (my $at = 0; $at + 20 <= length $answers;) {
    my ($length, $type, $number, $error) = unpack 'LSx2Lx4l', substr $answers, $at, 20;
    if ($type == 2) {
      if ($error != 0) { $! = -$error; die "change $number of $last: $!\n" }
      last ANSWERS if $number == $last;
    }
    $at += ($length + 3) & ~3;
  }
}
`;

/** linux/netfilter/nfnetlink.h */
const [BATCH_BEGIN, BATCH_END] = [16, 17];
const NF_TABLES = 10;
const FAMILY_INET = 1;
/** linux/netlink.h */
const [REQUEST, ACK] = [1, 4];
const HEADER_BYTES = 16;

/**
 * All of it or nothing, without nft: to start it, and to have it read the whole table, takes most of the time that a small
 * change takes.
 *
 * @param messages one at least
 */
export function transaction(messages: readonly Message[]): PerlProgram {
  const last = messages.length;
  const bytes = [
    bound(BATCH_BEGIN, 0),
    ...messages.map(({ type, flags, attributes }, index) => {
      const number = index + 1;
      const all = REQUEST | flags | (number === last ? ACK : 0);
      return message((NF_TABLES << 8) | type, all, number, [generic(FAMILY_INET, 0), ...attributes]);
    }),
    bound(BATCH_END, last + 1),
  ];
  return { text: PROGRAM, args: [`${last}`], input: Buffer.concat(bytes).toString("hex") };
}

function bound(type: number, number: number): Buffer {
  return message(type, REQUEST, number, [generic(0, NF_TABLES)]);
}

function message(type: number, flags: number, number: number, parts: readonly Buffer[]): Buffer {
  const length = parts.reduce((sum, { length }) => sum + length, HEADER_BYTES);
  const header = [Uint32Array.of(length), Uint16Array.of(type, flags), Uint32Array.of(number, 0)];
  return Buffer.concat([...header.map(({ buffer }) => Buffer.from(buffer)), ...parts]);
}

/** nfgenmsg: `resource` is in the order of the network. */
function generic(family: number, resource: number): Buffer {
  return Buffer.of(family, 0, resource >> 8, resource & 0xff);
}
