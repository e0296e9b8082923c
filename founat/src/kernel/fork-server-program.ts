/**
 * The program of a {@link import("./fork-server.ts").ForkServer}. In Perl, as the watch is (ADR 0026): it is small, so a
 * copy of it is there at once.
 *
 * Arguments: numbers of setns(2), memfd_create(2), clock_gettime(2), prctl(2) and exit_group(2); for how many seconds a
 * command may print nothing, what is told of one that was killed after them, and of one that has printed too much. Takes
 * requests: a line `NUMBER BYTES_OF_WORDS BYTES_OF_INPUT`, then the words with a zero byte between them, which are the
 * file of a network namespace and a command, then the input. `perl -e PROGRAM -- …` runs in the copy of this program,
 * without another Perl. Answers with a line `NUMBER EXIT_CODE BYTES_OF_STDOUT BYTES_OF_STDERR`, then these; the exit code
 * is `-` where there is none. When its standard input ends, it does when all commands have.
 */
export const FORK_SERVER_PROGRAM = String.raw`
# Before all else, so that programs see none of it.
sub compile { eval $_[0] }

# Runs a program as another Perl would, which would have to load what this one has.
sub run_here {
  (my ($code, $program), @ARGV) = @_;
  $! = 0;
  # In a sub, shift takes from this, in a program from that.
  *_ = \@ARGV;
  # A loop of its own: what leaves one without having any is not to go on with that of the server.
  { $code ? eval { &$code } : compile(qq(package Program;\n#line 1 "-e"\n$program)) }
  exit if !$@;
  my $status = $! + 0 || $? >> 8 || 255;
  print STDERR $@;
  exit $status;
}

use strict;
use warnings;
use constant { CLONE_NEWNET => 0x40000000, MFD_CLOEXEC => 1, CLOCK_MONOTONIC => 1, PR_SET_PDEATHSIG => 1 };
use constant { WNOHANG => 1, SIGTERM => 15, SIGXFSZ => 25 };
# Between SIGTERM and SIGKILL. While commands run it looks that often whether one has ended: a signal may come right before
# select sleeps.
use constant { GRACE_S => 1, LOOK_S => 0.05 };
# Far more than there are: none is forgotten.
use constant MOST_COMPILED => 16;

my ($setns, $memfd_create, $clock_gettime, $prctl, $exit_group, $silence_s, $silent, $talkative) = @ARGV;
my $server = $$;
# By process.
my (%running, %killed);
# By the program: what runs it.
my %code;
$| = 1;
binmode $_ for *STDIN, *STDOUT;
# Whoever waits for requests is told by it that a command has ended.
pipe my $woken, my $wake or die "pipe: $!\n";
$SIG{CHLD} = sub { syswrite $wake, '.' };
# Who writes more than there may be in a file is told by an error.
$SIG{XFSZ} = 'IGNORE';

# A copy ends without taking apart all that it has of the server: that takes longer than most programs.
END {
  if ($$ != $server) {
    my $code = $?;
    close $_ for *STDOUT, *STDERR;
    syscall $exit_group, $code;
  }
}

sub now {
  my $time = pack 'qq', 0, 0;
  syscall $clock_gettime, CLOCK_MONOTONIC, $time;
  my ($s, $ns) = unpack 'qq', $time;
  return $s + $ns / 1e9;
}

# No pipes: nobody has to read while a command runs.
sub memory_file {
  my ($name, $content) = @_;
  my $number = syscall $memfd_create, $name, MFD_CLOEXEC;
  $number >= 0 and open my $file, '+<&=', $number or die "memory file: $!\n";
  binmode $file;
  for (my $at = 0; $at < length $content;) {
    $at += syswrite($file, $content, length($content) - $at, $at) // die "memory file: $!\n";
  }
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

# To compile takes a copy longer than most programs take to run. False of those with blocks that would act here, of what cannot
# be compiled, and of one whose subs share variables of the program: as a sub it would warn of these, because they would not.
sub code_of {
  my ($program) = @_;
  return if $program =~ /\b(?:BEGIN|UNITCHECK|CHECK|INIT|END)\b/ || !exists $code{$program} && keys %code >= MOST_COMPILED;
  return $code{$program} //= do {
    my $warned;
    local $SIG{__WARN__} = sub { $warned = 1 };
    my $sub = compile(sprintf qq(package Program%d; use warnings 'closure'; sub {\n#line 1 "-e"\n%s\n}), scalar keys %code, $program);
    $warned ? 0 : $sub // 0;
  };
}

sub start {
  my ($number, $words, $input) = @_;
  my ($namespace, $netns, @command) = (undef, split /\0/, $words, -1);
  my $is_program = @command > 3 && "@command[0, 1, 3]" eq 'perl -e --';
  my $code = $is_program && code_of($command[2]);
  my %command = (number => $number, heard_at => now(), printed => 0);
  @command{'stdin', 'stdout', 'stderr'} = eval { memory_file('stdin', $input), map { memory_file($_, '') } 'stdout', 'stderr' }
    or return answer(\%command, '-', '', $@);
  my $pid = fork // return answer(\%command, '-', '', "fork: $!\n");
  if ($pid) { $running{$pid} = \%command; return }
  # In a process group of its own: a shell that is killed alone leaves behind the command that it waits for.
  setpgrp;
  # Nobody would end it who is not heard of any more. The server may have ended before this was asked for (prctl(2)).
  syscall $prctl, PR_SET_PDEATHSIG, SIGTERM;
  exit 1 if getppid != $server;
  @SIG{'CHLD', 'XFSZ'} = ('DEFAULT', 'DEFAULT');
  open STDIN, '<&', $command{stdin} and open STDERR, '>&', $command{stderr} and open STDOUT, '>&', $command{stdout} or exit 1;
  open $namespace, '<', $netns and syscall($setns, fileno $namespace, CLONE_NEWNET) == 0 or die "cannot enter $netns: $!\n";
  run_here($code, @command[2, 4 .. $#command]) if $is_program;
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
    # A shell tells by its own code what has ended a command.
    my ($signal, $code) = ($? & 127, $? >> 8);
    my $is_talkative = $signal == SIGXFSZ || $code == 128 + SIGXFSZ;
    my $command = delete $running{$pid} or next;
    # Whoever is told that a command has ended changes things without it.
    kill 'KILL', -$pid;
    my $stdout = $is_talkative ? '' : content($command->{stdout});
    my $why = $is_talkative ? $talkative : $signal ? "it was ended by signal $signal" : undef;
    answer($command, defined $why ? ('-', $stdout, $why) : ($code, $stdout, content($command->{stderr})));
  }
}

# A shell that is asked can reap the command that it waits for. After SIGKILL that is left to PID 1, which in a container
# is a program that reaps none but its own children. One that is stuck in the kernel ends when it comes out of it: it is
# not waited for.
sub end_silent {
  my $now = now();
  for my $pid (grep { $killed{$_} < $now } keys %killed) {
    kill 'KILL', -$pid;
    delete $killed{$pid};
  }
  while (my ($pid, $command) = each %running) {
    my $printed = (-s $command->{stdout}) + (-s $command->{stderr});
    @$command{'printed', 'heard_at'} = ($printed, $now) if $printed != $command->{printed};
    next if $now - $command->{heard_at} < $silence_s;
    kill 'TERM', -$pid;
    $killed{$pid} = $now + GRACE_S;
    answer($command, '-', content($command->{stdout}), $silent);
    delete $running{$pid};
  }
}

my ($received, $is_asked) = ('', 1);
while ($is_asked || %running || %killed) {
  my $readable = '';
  vec($readable, $_, 1) = 1 for fileno $woken, $is_asked ? 0 : ();
  my $ready = select $readable, undef, undef, %running || %killed ? LOOK_S : undef;
  if ($ready > 0 && vec $readable, fileno $woken, 1) { sysread $woken, my $signals, 4096 }
  if ($ready > 0 && vec $readable, 0, 1) {
    $is_asked = sysread STDIN, $received, 65536, length $received;
    take_requests(\$received);
  }
  reap();
  end_silent();
}
`;
