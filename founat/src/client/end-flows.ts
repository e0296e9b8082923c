import type { Command } from "../kernel/step.ts";
import type { Pin } from "./mark.ts";

/** In one filter: with thousands of them ss closes none. */
const SOCKETS_AT_ONCE = 300;

/**
 * Asks for all flows once, because conntrack's table is that of all network namespaces, and to go through it takes longer
 * than anything else here. Flows of a mark are deleted until there is none. Without a filter ss would close all sockets.
 *
 * Arguments: the mask, and a value for each mark.
 */
const PROGRAM = String.raw`
use strict;
use warnings;
my ($mask, %wanted) = (shift, map { $_ => 1 } @ARGV);
my (%found, @connections);
open STDOUT, '>', '/dev/null';
open STDERR, '>', '/dev/null';
open my $flows, '-|', 'conntrack', '-L' or exit;
while (<$flows>) {
  my ($mark) = /\bmark=(\d+)/ or next;
  # Of text perl would make another text.
  my $value = $mark + 0 & $mask + 0;
  $wanted{$value} or next;
  $found{$value} = 1;
  push @connections, "( src [$1]:$3 and dst [$2]:$4 )" if /^tcp .*? src=(\S+) dst=(\S+) sport=(\d+) dport=(\d+)/;
}
while (my @some = splice @connections, 0, ${SOCKETS_AT_ONCE}) {
  system 'ss', '-K', '-H', '-t', '-n', join ' or ', @some;
}
for my $value (keys %found) {
  1 while system('conntrack', '-D', '-m', "$value/$mask") == 0;
}
`;

/**
 * Ends the flows of some marks, so that other links may have them: programs are told at once that their connections are
 * over, also those that only wait. Not every kernel lets sockets be closed (CONFIG_INET_DIAG_DESTROY): there the next
 * segment is answered by a reset.
 */
export function endFlows(pins: readonly Pick<Pin, "mark">[]): Command[] {
  const [first] = pins;
  if (first === undefined) return [];
  const values = pins.map(({ mark }) => `${mark.value}`);
  return [{ file: "perl", args: ["-e", PROGRAM, "--", `${first.mark.mask}`, ...values], mayFail: true }];
}
