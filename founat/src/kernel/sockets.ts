/**
 * Of the kernel's TCP sockets in a network namespace (sock_diag(7)), for programs in Perl: how to end connections. Goes
 * after {@link CONNTRACK}.
 */
export const SOCKETS = String.raw`
# linux/sock_diag.h
use constant { SOCK_DIAG_BY_FAMILY => 20, SOCK_DESTROY => 21, AF_INET => 2, AF_INET6 => 10 };
# net/tcp_states.h: those in which a program waits for the other side.
use constant CONNECTED => 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;

# struct inet_diag_req_v2 of linux/inet_diag.h, with the struct inet_diag_sockid that names the socket.
sub ask_of_sockets {
  my ($socket, $type, $flags, $family, $id) = @_;
  my $body = pack 'C4 L a48', $family, IPPROTO_TCP, 0, 0, CONNECTED, $id;
  send $socket, request($type, $flags, $body), 0 or die "send: $!\n";
}

# By ports and addresses, source before destination, as they are on the wire.
sub connection_name {
  my ($ports, @addresses) = @_;
  return join '', $ports, @addresses;
}

# A socket of IPv6 may have a connection of IPv4, and has its addresses mapped (RFC 4291, section 2.5.5.2).
sub name_of_socket {
  my ($family, $id) = @_;
  my ($ports, @addresses) = unpack 'a4 a16 a16', $id;
  my @short = $family == AF_INET ? map { substr $_, 0, 4 } @addresses : map { /^\0{10}\xff\xff(.{4})$/s } @addresses;
  return connection_name($ports, @short == 2 ? @short : @addresses);
}

# By what the kernel says of each, its device and its cookie too: no other socket is meant, and none that listens.
sub end_connections {
  my %is_wanted = map { $_ => 1 } @_;
  socket my $socket, AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG or return;
  my @ended;
  for my $family (AF_INET, AF_INET6) {
    ask_of_sockets($socket, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, $family, '');
    each_message($socket, sub {
      my $id = substr $_[0], 4, 48;
      push @ended, [$family, $id] if $is_wanted{name_of_socket($family, $id)};
    });
  }
  # Nobody reads what is answered: it ends when this returns.
  ask_of_sockets($socket, SOCK_DESTROY, 0, @$_) for @ended;
}
`;
