import { NETLINK } from "../kernel/netlink.ts";

/**
 * The program of a {@link import("./netns-watch.ts").NetnsWatch}, in Perl: of what every Debian has, only Perl can keep
 * sockets in other network namespaces, and it takes 6 MB for all of them (ADR 0026). It decodes nothing of what the
 * kernel says of a client's configuration; whether anything is said, and whether it is the same as before, is all that it
 * asks.
 *
 * Arguments: number of setns(2); an nft table of family inet, and names of counters in it, with commas between them;
 * folder of sysctls, patterns of paths below it. Takes lines `watch NETNS` and `forget NETNS`, and prints `changed NETNS`,
 * once at first, `counted NETNS PACKETS...`, at first and when there are others, where all of the counters are, and
 * `lost NETNS REASON` where it cannot be watched. It ends with its standard input.
 */
export const WATCH_PROGRAM = String.raw`
use strict;
use warnings;

use constant { CLONE_NEWNET => 0x40000000 };
use constant { SOCK_NONBLOCK => 0x800, SOL_SOCKET => 1, SO_RCVBUF => 8 };
${NETLINK}
# linux/rtnetlink.h: links, and of both families addresses, routes and rules.
use constant { ROUTE_GROUPS => 0x1 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | 1 << 18 };
# linux/netfilter/nf_tables.h: the number of the last transaction; counters.
use constant { NFT_MSG_GETGEN => 10 << 8 | 16, NFT_MSG_GETOBJ => 10 << 8 | 19, NFPROTO_INET => 1, NFT_OBJECT_COUNTER => 1 };
use constant { NFTA_OBJ_TABLE => 1, NFTA_OBJ_NAME => 2, NFTA_OBJ_TYPE => 3, NFTA_OBJ_DATA => 4, NFTA_COUNTER_PACKETS => 2 };
# linux/genetlink.h, linux/fou.h
use constant { GENL_ID_CTRL => 16, CTRL_CMD_GETFAMILY => 3, CTRL_ATTR_FAMILY_ID => 1, CTRL_ATTR_FAMILY_NAME => 2, FOU_CMD_GET => 3 };
# A pod can change its namespace as often as it likes: no more than this is read of it at a time.
use constant { BUFFER_BYTES => 16384, READS => 32 };
# Nothing tells of sysctls and counters, and to read them takes longer than all else: a part of the clients at a time.
use constant { TICK_S => 1, VALUES_EVERY => 8 };
# To open a sysctl takes ten times as long as to read it, so it is kept open; but a pod can have as many links as it likes.
use constant { KEPT_OPEN => 128 };

my ($setns, $table, $counters, $sysctls, @patterns) = @ARGV;
my ($fou, %watched);
$| = 1;
open my $home, '<', '/proc/self/ns/net' or die "own network namespace: $!\n";

sub enter {
  my ($namespace) = @_;
  return syscall($setns, fileno $namespace, CLONE_NEWNET) == 0;
}

sub netlink {
  my ($protocol, $groups) = @_;
  socket my $socket, AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, $protocol or return;
  setsockopt $socket, SOL_SOCKET, SO_RCVBUF, BUFFER_BYTES if $groups;
  bind $socket, pack 'SSLL', AF_NETLINK, 0, 0, $groups or return;
  return $socket;
}

# The answer is there when send returns: netlink answers in the caller's own time.
sub ask {
  my ($socket, $type, $flags, $body) = @_;
  send $socket, request($type, $flags, $body), 0 or return "$!";
  my $answer = '';
  for (1 .. READS) {
    defined recv $socket, my $part, 65536, 0 or last;
    $answer .= $part;
    last if !$flags;
  }
  return $answer;
}

# The attribute of that number in an answer that is no error.
sub answered {
  my ($number, $answer) = @_;
  return if length $answer < 20 || unpack('x4 S', $answer) == NLMSG_ERROR;
  return attributes(substr $answer, 20)->{$number};
}

# Number of the generic netlink family, which is the same in all network namespaces.
sub family {
  my ($name) = @_;
  my $question = pack('CCS', CTRL_CMD_GETFAMILY, 1, 0) . attribute(CTRL_ATTR_FAMILY_NAME, "$name\0");
  my $number = answered(CTRL_ATTR_FAMILY_ID, ask(netlink(NETLINK_GENERIC, 0), GENL_ID_CTRL, 0, $question));
  return defined $number ? unpack 'S', $number : undef;
}

sub watch {
  my ($name) = @_;
  $fou //= family('fou');
  my %client = (name => $name, quiet => '', counts => '', ticks => scalar keys %watched);
  open $client{namespace}, '<', $name or return;
  enter($client{namespace}) or return;
  $client{route} = netlink(NETLINK_ROUTE, ROUTE_GROUPS) or return;
  $client{nft} = netlink(NETLINK_NETFILTER, 0) or return;
  $client{generic} = netlink(NETLINK_GENERIC, 0) or return;
  # Before it is told for the first time: whoever looks then has seen these values or later ones.
  $client{values} = values_of(\%client);
  return \%client;
}

# What came in the meantime, and more than there was room for is an error that is told once.
sub spoke {
  my ($socket) = @_;
  my $spoke = 0;
  for (1 .. READS) {
    last if !defined recv($socket, my $part, 65536, 0) and $!{EAGAIN};
    $spoke = 1;
  }
  return $spoke;
}

sub changed {
  my ($client, $reads_values) = @_;
  my $changed = spoke($client->{route});
  # Sysctls come and go with links.
  delete $client->{sysctls} if $changed;
  my $quiet = substr ask($client->{nft}, NFT_MSG_GETGEN, 0, pack 'L', 0), 20, 8;
  $quiet .= ask($client->{generic}, $fou, NLM_F_DUMP, pack 'CCS', FOU_CMD_GET, 1, 0) if $fou;
  $changed ||= $quiet ne $client->{quiet};
  $client->{quiet} = $quiet;
  if ($reads_values) {
    my $values = values_of($client);
    $changed ||= $values ne $client->{values};
    $client->{values} = $values;
  }
  return $changed;
}

sub values_of {
  my ($client) = @_;
  enter($client->{namespace});
  $client->{sysctls} //= [map { { path => $_ } } map { glob "$sysctls/$_" } @patterns];
  my $room = KEPT_OPEN;
  return join '', map { value_of($_, $room-- > 0) } @{ $client->{sysctls} };
}

sub value_of {
  my ($sysctl, $keeps_open) = @_;
  my $file = delete $sysctl->{file};
  if ($file) { sysseek $file, 0, 0 }
  elsif (!open $file, '<:unix', $sysctl->{path}) {
    die "sysctls: $!\n" if $!{EMFILE};
    return '-';
  }
  sysread $file, my $value, 64 or return '-';
  $sysctl->{file} = $file if $keeps_open;
  return $value;
}

# Of a table that is not there, or not what it should be, it says nothing.
sub tell_counts {
  my ($client) = @_;
  my @counts;
  for my $counter (split /,/, $counters) {
    my $question = pack('CCS', NFPROTO_INET, 0, 0) . attribute(NFTA_OBJ_TABLE, "$table\0")
      . attribute(NFTA_OBJ_NAME, "$counter\0") . attribute(NFTA_OBJ_TYPE, pack 'N', NFT_OBJECT_COUNTER);
    my $counted = answered(NFTA_OBJ_DATA, ask($client->{nft}, NFT_MSG_GETOBJ, 0, $question)) // return;
    push @counts, unpack 'Q>', attributes($counted)->{+NFTA_COUNTER_PACKETS};
  }
  return if "@counts" eq $client->{counts};
  $client->{counts} = "@counts";
  print "counted $client->{name} @counts\n";
}

my ($left, $received) = (TICK_S, '');
while (1) {
  my $readable = '';
  vec($readable, 0, 1) = 1;
  (my $ready, $left) = select $readable, undef, undef, $left;
  if ($ready > 0) {
    sysread STDIN, $received, 65536, length $received or exit;
    while ($received =~ s/^(.*)\n//) {
      my ($command, $name) = split ' ', $1;
      delete $watched{$name};
      next if $command ne 'watch';
      my $client = watch($name);
      my $reason = $!;
      enter($home);
      if ($client) { $watched{$name} = $client } else { print "lost $name $reason\n" }
    }
  }
  next if $left > 0;
  $left = TICK_S;
  for my $client (values %watched) {
    my $reads_values = $client->{ticks}++ % VALUES_EVERY == 0;
    print "changed $client->{name}\n" if changed($client, $reads_values);
    tell_counts($client) if $reads_values;
  }
  enter($home);
}
`;
