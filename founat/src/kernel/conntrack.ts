import { NETLINK } from "./netlink.ts";

/** Of the kernel's connection tracking, for programs in Perl: each flow once, and how to end it. */
export const CONNTRACK = String.raw`
${NETLINK}
# linux/netfilter/nfnetlink_conntrack.h
use constant { CT_NEW => 1 << 8, CT_GET => 1 << 8 | 1, CT_DELETE => 1 << 8 | 2 };
use constant { TUPLE_ORIG => 1, STATUS => 3, PROTOINFO => 4, MARK => 8, ID => 12, ZONE => 18, MARK_MASK => 21 };
use constant { SEEN_REPLY => 2, SRC_NAT => 16, OF_TCP => 1, STATE => 1, FLAGS_REPLY => 5 };
use constant { TIME_WAIT => 7, CLOSE => 8, CLOSE_INIT => 4 };
use constant { TUPLE_IP => 1, TUPLE_PROTO => 2, PROTO_NUM => 1, PROTO_SRC_PORT => 2, PROTO_DST_PORT => 3, IPPROTO_TCP => 6 };

sub ask {
  my ($socket, $type, $flags, $family, $body) = @_;
  send $socket, request($type, $flags, pack('CCn', $family, 0, 0) . $body), 0 or die "send: $!\n";
}

# The value of one attribute, undefined where there is none: most of the others are never read.
sub value_of {
  my ($bytes, $wanted) = @_;
  for (my $at = 0; $at + 4 <= length $bytes;) {
    my ($length, $number) = unpack 'SS', substr $bytes, $at, 4;
    last if $length < 4;
    return substr $bytes, $at + 4, $length - 4 if ($number & 0x3fff) == $wanted;
    $at += ($length + 3) & ~3;
  }
  return;
}

# Calls back with the family and the attributes of each flow. True once it has seen all.
sub each_flow {
  my ($socket, $on_flow) = @_;
  ask($socket, CT_GET, NLM_F_DUMP, 0, '');
  return each_message($socket, sub { $on_flow->(ord $_[0], substr $_[0], 4) });
}

# What names a flow to the kernel: a later one of the same addresses has another number.
sub identity {
  my ($flow) = @_;
  return join '', map { attribute($_, value_of($flow, $_)) } TUPLE_ORIG, ZONE, ID;
}
`;
