/**
 * The program of a {@link import("./fork-server.ts").ForkServer}. In Perl, as the watch is (ADR 0026): it is small, so a
 * copy of it is there at once.
 *
 * Arguments: numbers of setns(2) and of memfd_create(2); seconds of a tick, how many of them a command may print nothing,
 * and what is told of one that was killed after them. Takes requests: a line `NUMBER BYTES_OF_WORDS BYTES_OF_INPUT`, then the words with a zero byte between them,
 * which are the file of a network namespace and a command, then the input. Answers with a line
 * `NUMBER EXIT_CODE BYTES_OF_STDOUT BYTES_OF_STDERR`, then these; the exit code is `-` where there is
 * none. It ends with its standard input, and lets what runs go on.
 */
export const FORK_SERVER_PROGRAM = String.raw`
use strict;
use warnings;
use constant { CLONE_NEWNET => 0x40000000, MFD_CLOEXEC => 1, WNOHANG => 1 };

my ($setns, $memfd_create, $tick_s, $silent_ticks, $silent) = @ARGV;
# By process.
my (%running, %killed);
$| = 1;
# Whoever waits for requests is told by it that a command has ended.
pipe my $woken, my $wake or die "pipe: $!\n";
$SIG{CHLD} = sub { syswrite $wake, '.' };

# No pipes: nobody has to read while a command runs.
sub memory_file {
  my ($name, $content) = @_;
  my $number = syscall $memfd_create, $name, MFD_CLOEXEC;
  $number >= 0 and open my $file, '+<&=', $number or die "memory file: $!\n";
  binmode $file;
  for (my $at = 0; $at < length $content;) { $at += syswrite($file, $content, length($content) - $at, $at) // die "memory file: $!\n" }
  sysseek $file, 0, 0;
  return $file;
}

sub content {
  my ($file) = @_;
  sysseek $file, 0, 0;
  my $content = '';
  while (sysread $file, $content, 1 << 20, length $content) { }
  return $content;
}

sub start {
  my ($number, $words, $input) = @_;
  my ($namespace, $netns, @command) = (undef, split /\0/, $words, -1);
  my %command = (number => $number, ticks => 0, printed => 0);
  @command{'stdin', 'stdout', 'stderr'} = eval { memory_file('stdin', $input), map { memory_file($_, '') } 'stdout', 'stderr' }
    or return answer(\%command, '-', '', $@);
  my $pid = fork // return answer(\%command, '-', '', "fork: $!\n");
  if ($pid) { $running{$pid} = \%command; return }
  # In a process group of its own: a shell that is killed alone leaves behind the command that it waits for.
  setpgrp;
  $SIG{CHLD} = 'DEFAULT';
  open STDIN, '<&', $command{stdin};
  open STDOUT, '>&', $command{stdout};
  open STDERR, '>&', $command{stderr};
  open $namespace, '<', $netns and syscall($setns, fileno $namespace, CLONE_NEWNET) == 0 or die "cannot enter $netns: $!\n";
  { no warnings 'exec'; exec { $command[0] } @command }
  die "$command[0]: $!\n";
}

sub answer {
  my ($command, $code, $stdout, $stderr) = @_;
  print "$command->{number} $code ", length $stdout, ' ', length $stderr, "\n", $stdout, $stderr;
}

sub take_requests {
  my ($received) = @_;
  while ($$received =~ /^(\d+) (\d+) (\d+)\n/) {
    my ($number, $words, $input, $at) = ($1, $2, $3, $+[0]);
    last if length $$received < $at + $words + $input;
    start($number, substr($$received, $at, $words), substr($$received, $at + $words, $input));
    substr($$received, 0, $at + $words + $input) = '';
  }
}

sub reap {
  while ((my $pid = waitpid -1, WNOHANG) > 0) {
    my $code = $? & 127 ? 128 + ($? & 127) : $? >> 8;
    my $command = delete $running{$pid} or next;
    answer($command, $code, content($command->{stdout}), content($command->{stderr}));
  }
}

# A shell that is asked can reap the command that it waits for. After SIGKILL that is left to PID 1, which in a container
# is a program that reaps none but its own children. One that is stuck in the kernel ends when it comes out of it: it is
# not waited for.
sub end_silent {
  for my $pid (keys %killed) {
    kill 'KILL', -$pid;
    delete $killed{$pid};
  }
  while (my ($pid, $command) = each %running) {
    my $printed = (-s $command->{stdout}) + (-s $command->{stderr});
    $command->{ticks} = 0 if $printed != $command->{printed};
    $command->{printed} = $printed;
    next if $command->{ticks}++ < $silent_ticks;
    kill 'TERM', -$pid;
    $killed{$pid} = 1;
    answer($command, '-', content($command->{stdout}), $silent);
    delete $running{$pid};
  }
}

my ($left, $received) = ($tick_s, '');
while (1) {
  my $readable = '';
  vec($readable, $_, 1) = 1 for 0, fileno $woken;
  my $has_ticks = %running || %killed;
  my ($ready, $rest) = select $readable, undef, undef, $has_ticks ? $left : undef;
  $left = $has_ticks ? $rest : $tick_s;
  if ($ready > 0 && vec $readable, fileno $woken, 1) {
    sysread $woken, my $signals, 4096;
    reap();
  }
  if ($ready > 0 && vec $readable, 0, 1) {
    sysread STDIN, $received, 65536, length $received or exit;
    take_requests(\$received);
  }
  next if $left > 0;
  $left = $tick_s;
  end_silent();
}
`;
