import { CONNTRACK } from "../kernel/conntrack.ts";
import type { PerlProgram } from "../kernel/perl.ts";
import { SOCKETS } from "../kernel/sockets.ts";
import type { Pin } from "./mark.ts";

/**
 * Goes once through all flows, because conntrack's table is that of all network namespaces, and to go through it takes
 * longer than anything else here: `conntrack -D` would do so again. A client with few flows, as most are, and none of these
 * marks is done before that: its file in /proc (CONFIG_NF_CONNTRACK_PROCFS) is read in a tenth of the time, because the
 * kernel takes no lock for it.
 *
 * Arguments: the mask, and a value for each mark.
 */
const PROGRAM = String.raw`
use strict;
use warnings;
# Of the package, so that the fork server has it compiled (its code_of). A number, because & of two strings is one of their
# bytes.
our ($mask, %wanted) = (shift(@ARGV) + 0, map { $_ => 1 } @ARGV);

# What does not fit into one read is no answer: flows that end between two reads would hide others.
sub has_none {
  open my $file, '<', '/proc/self/net/nf_conntrack' or return;
  defined sysread $file, my $flows, 1 << 16 or return;
  my $more = sysread $file, my $rest, 1;
  return if !defined $more || $more > 0;
  return !grep { $wanted{$_ & $mask} } $flows =~ / mark=(\d+)/g;
}

exit if has_none();
${CONNTRACK}
${SOCKETS}
use constant SOCK_DGRAM => 2;

# Whether a socket may have it. Containers in the pod have others.
sub is_own {
  my ($bytes) = @_;
  my $family = length $bytes == 4 ? AF_INET : AF_INET6;
  socket my $socket, $family, SOCK_DGRAM, 0 or return;
  return bind $socket, pack $family == AF_INET ? 'Sx2a4x8' : 'Sx6a16x4', $family, $bytes;
}

# Undefined of anything but a connection.
sub connection {
  my ($tuple) = @_;
  my ($ip, $proto) = map { attributes($tuple->{$_} // '') } TUPLE_IP, TUPLE_PROTO;
  return if unpack('C', $proto->{+PROTO_NUM} // "\0") != IPPROTO_TCP;
  # Source and destination have the smaller and the larger number, in both families.
  my ($source, $destination) = map { $ip->{$_} } sort { $a <=> $b } keys %$ip;
  my $ports = join '', map { $proto->{$_} } PROTO_SRC_PORT, PROTO_DST_PORT;
  return { isOwn => scalar is_own($source), name => connection_name($ports, $source, $destination) };
}

# An attempt that was sent again has begun anew, and may have been answered, since all flows were read.
sub is_still_wanted {
  my ($socket, $family, $identity) = @_;
  ask($socket, CT_GET, 0, $family, $identity);
  defined recv $socket, my $answer, 1 << 13, 0 or return;
  my ($length, $type) = unpack 'LS', $answer;
  return if $type == NLMSG_ERROR || $length < 20;
  return $wanted{unpack('N', value_of(substr($answer, 20), MARK) // "\0" x 4) & $mask};
}

open STDOUT, '>', '/dev/null';
open STDERR, '>', '/dev/null';
socket my $socket, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER or die "socket: $!\n";
my (@lost, @over, @own);
# Most flows are of other gateways: of these nothing else is read.
each_flow($socket, sub {
  my ($family, $flow) = @_;
  my $mark = value_of($flow, MARK) // return;
  $wanted{unpack('N', $mark) & $mask} or return;
  # An attempt that nobody has answered begins anew by its next segment.
  my $is_answered = unpack('N', value_of($flow, STATUS) // "\0" x 4) & SEEN_REPLY;
  my $connection = $is_answered ? connection(attributes(value_of($flow, TUPLE_ORIG))) : undef;
  push @own, $connection->{name} if $connection && $connection->{isOwn};
  push @{$connection && !$connection->{isOwn} ? \@over : \@lost}, [$family, identity($flow)];
});
# Closed, so that it ends soon, and another connection may have its ports.
my $closed = attribute(STATE, pack 'C', CLOSE) . attribute(FLAGS_REPLY, pack 'CC', (CLOSE_INIT) x 2);
my $over = attribute(PROTOINFO, attribute(OF_TCP, $closed)) . join '', map { attribute($_, pack 'N', $mask) } MARK, MARK_MASK;
ask($socket, CT_NEW, 0, $_->[0], $_->[1] . $over) for @over;
end_connections(@own) if @own;
socket my $asking, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER or die "socket: $!\n";
is_still_wanted($asking, @$_) && ask($socket, CT_DELETE, 0, @$_) for @lost;
`;

/**
 * Ends the flows of some marks, so that other links may have them: programs are told at once that their connections are
 * over, also those that only wait. Not every kernel lets sockets be closed (CONFIG_INET_DIAG_DESTROY): there the next
 * segment is answered by a reset of the destination. The sockets of containers in the pod are not here: their connections
 * get all bits of the mask, which no gateway has, and the guard answers their next segment by a reset.
 */
export function endFlows(pins: readonly Pick<Pin, "mark">[]): PerlProgram[] {
  const [first] = pins;
  if (first === undefined) return [];
  const values = pins.map(({ mark }) => `${mark.value}`);
  return [{ text: PROGRAM, args: [`${first.mark.mask}`, ...values], mayFail: true }];
}
