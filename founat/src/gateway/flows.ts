import { FounatError } from "../error.ts";
import { CONNTRACK } from "../kernel/conntrack.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { Command } from "../kernel/step.ts";

/**
 * Goes once through all flows, whatever is asked of them: the table is that of all network namespaces, and there may be
 * a million flows. Those of clients leave with another address, because a gateway translates nothing else.
 *
 * Argument: live, sources, or end, which takes addresses on standard input.
 */
const PROGRAM = String.raw`
use strict;
use warnings;
use Socket qw(AF_INET AF_INET6 inet_ntop inet_pton);
${CONNTRACK}
sub status { unpack 'N', value_of($_[0], STATUS) // "\0" x 4 }

# The first of the addresses in it, in both families.
sub source {
  my $ip = value_of(value_of($_[0], TUPLE_ORIG) // '', TUPLE_IP) // '';
  return substr $ip, 4, unpack('S', $ip . "\0\0") - 4;
}

# TCP that has nothing more to say: nf_conntrack_proto_tcp.c.
sub is_over {
  my $tcp = value_of(value_of($_[0], PROTOINFO) // '', OF_TCP) // return 0;
  my $state = unpack 'C', value_of($tcp, STATE) // "\0";
  return $state == TIME_WAIT || $state == CLOSE;
}

my ($live, %sources, @ended) = (0);
my %wanted;
if ($ARGV[0] eq 'end') {
  while (my $address = <STDIN>) {
    chomp $address;
    $wanted{inet_pton($address =~ /:/ ? AF_INET6 : AF_INET, $address) // ''} = 1;
  }
}
my %look = (
  live => sub { $live += 1 if status($_[1]) & SRC_NAT && !is_over($_[1]) },
  sources => sub { $sources{source($_[1])} = 1 if status($_[1]) & SRC_NAT },
  end => sub { push @ended, [$_[0], identity($_[1])] if $wanted{source($_[1])} },
);
socket my $socket, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER or die "socket: $!\n";
each_flow($socket, $look{$ARGV[0]}) or die "conntrack's table could not be read to its end\n";
ask($socket, CT_DELETE, 0, @$_) for @ended;
print "$live\n" if $ARGV[0] eq 'live';
print inet_ntop(length == 4 ? AF_INET : AF_INET6, $_), "\n" for keys %sources;
`;

/**
 * How many flows of a gateway's clients are not over: one that is about to end waits for them. The kernel alone knows, also
 * where another program has let them in.
 *
 * @throws FounatError `kernel-command-failed`, `unexpected-output`
 */
export async function liveFlows(kernel: Pick<Kernel, "read">): Promise<number> {
  const [output = ""] = await kernel.read([look("live")]);
  if (!/^\d+\n$/.test(output)) throw new FounatError("unexpected-output", `no number of flows: ${output}`);
  return Number(output);
}

/**
 * The addresses of clients that have flows.
 *
 * @throws FounatError `kernel-command-failed`
 */
export async function sourcesOfFlows(kernel: Pick<Kernel, "read">): Promise<readonly string[]> {
  const [output = ""] = await kernel.read([look("sources")]);
  return output.split("\n").filter((line) => line !== "");
}

/**
 * Ends the flows that addresses have begun; outer packets have none. One that ends by itself meanwhile is no failure.
 *
 * @throws FounatError `kernel-command-failed`
 */
export async function endFlows(kernel: Pick<Kernel, "run">, addresses: Iterable<string>): Promise<void> {
  const lines = Array.from(addresses, (address) => `${address}\n`);
  if (lines.length > 0) await kernel.run([{ ...look("end"), input: lines.join("") }]);
}

function look(task: "live" | "sources" | "end"): Command {
  return { file: "perl", args: ["-e", PROGRAM, "--", task] };
}
