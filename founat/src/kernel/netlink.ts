/** Of netlink(7), for programs in Perl: the messages that it takes, and their attributes. */
export const NETLINK = String.raw`
use constant { AF_NETLINK => 16, SOCK_RAW => 3 };
use constant { NETLINK_ROUTE => 0, NETLINK_SOCK_DIAG => 4, NETLINK_NETFILTER => 12, NETLINK_GENERIC => 16 };
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

# Calls back with the body of each message that answers a dump. True once it has seen all.
sub each_message {
  my ($socket, $on_message) = @_;
  while (1) {
    defined recv $socket, my $answer, 1 << 17, 0 or return;
    for (my $at = 0; $at + 16 <= length $answer;) {
      my ($length, $type) = unpack 'LS', substr $answer, $at, 6;
      return 1 if $type == NLMSG_DONE;
      return if $type == NLMSG_ERROR || $length < 20;
      $on_message->(substr $answer, $at + 16, $length - 16);
      $at += ($length + 3) & ~3;
    }
  }
}
`;
