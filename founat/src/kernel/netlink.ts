/** Of netlink(7), for programs in Perl: the messages that it takes, and their attributes. */
export const NETLINK = String.raw`
use constant { AF_NETLINK => 16, SOCK_RAW => 3, NETLINK_ROUTE => 0, NETLINK_NETFILTER => 12, NETLINK_GENERIC => 16 };
use constant { NLM_F_REQUEST => 1, NLM_F_DUMP => 0x300, NLMSG_ERROR => 2, NLMSG_DONE => 3 };

sub request {
  my ($type, $flags, $body) = @_;
  return pack('LSSLL', 16 + length $body, $type, NLM_F_REQUEST | $flags, 0, 0) . $body;
}

# Nothing of what is not there.
sub attribute {
  my ($number, $value) = @_;
  return defined $value ? pack 'SSa*x!4', 4 + length $value, $number, $value : '';
}

# By their numbers, without the flags of nesting and byte order.
sub attributes {
  my ($bytes) = @_;
  my %attributes;
  for (my $at = 0; $at + 4 <= length $bytes;) {
    my ($length, $number) = unpack "x$at SS", $bytes;
    last if $length < 4;
    $attributes{$number & 0x3fff} = substr $bytes, $at + 4, $length - 4;
    $at += ($length + 3) & ~3;
  }
  return \%attributes;
}
`;
