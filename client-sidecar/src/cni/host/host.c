/*
 * The executable around the plugin: runs its bytecode on QuickJS-NG, and gives it by the global `host` (host.ts) what it
 * needs of the operating system, and nothing else. The process ends with it, so nothing is freed that it may keep.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "quickjs.h"

/* No reply of the agent is longer; whatever sends more is not the agent. */
#define MAX_REPLY_BYTES 65536

/* What the bytecode compiler wrote. */
extern const uint8_t program[];
extern const size_t program_size;

extern char **environ;

typedef struct {
	char *bytes;
	size_t length, capacity;
} Buffer;

static int reserve(Buffer *buffer, size_t room)
{
	if (buffer->capacity - buffer->length >= room)
		return 0;
	size_t capacity = 2 * buffer->capacity + room;
	char *bytes = realloc(buffer->bytes, capacity);
	if (bytes == NULL)
		return -1;
	buffer->bytes = bytes;
	buffer->capacity = capacity;
	return 0;
}

static JSValue fail(JSContext *ctx, const char *what, const char *where)
{
	return JS_ThrowPlainError(ctx, "cannot %s %s: %s", what, where, strerror(errno));
}

/* Waits until a descriptor is ready: one that does not block is as good as one that does. */
static void wait_for(int fd, short events)
{
	struct pollfd polled = {.fd = fd, .events = events};
	poll(&polled, 1, -1);
}

/* Reads to the end of a file. */
static int read_all(int fd, Buffer *buffer)
{
	for (;;) {
		if (reserve(buffer, BUFSIZ) < 0)
			return -1;
		ssize_t got = read(fd, buffer->bytes + buffer->length, buffer->capacity - buffer->length);
		if (got == 0)
			return 0;
		if (got > 0)
			buffer->length += got;
		else if (errno == EAGAIN)
			wait_for(fd, POLLIN);
		else if (errno != EINTR)
			return -1;
	}
}

static JSValue text_of(JSContext *ctx, int fd, const char *name)
{
	Buffer buffer = {0};
	if (fd < 0 || read_all(fd, &buffer) < 0)
		return fail(ctx, "read", name);
	return JS_NewStringLen(ctx, buffer.bytes, buffer.length);
}

static JSValue read_stdin(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	return text_of(ctx, STDIN_FILENO, "stdin");
}

static JSValue write_stdout(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	size_t left;
	const char *text = JS_ToCStringLen(ctx, &left, argv[0]);
	if (text == NULL)
		return JS_EXCEPTION;
	while (left > 0) {
		ssize_t sent = write(STDOUT_FILENO, text, left);
		if (sent >= 0) {
			text += sent;
			left -= sent;
		} else if (errno == EAGAIN)
			wait_for(STDOUT_FILENO, POLLOUT);
		else if (errno != EINTR)
			return fail(ctx, "write", "stdout");
	}
	return JS_UNDEFINED;
}

static JSValue read_file(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	const char *path = JS_ToCString(ctx, argv[0]);
	if (path == NULL)
		return JS_EXCEPTION;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	JSValue text = text_of(ctx, fd, path);
	if (fd >= 0)
		close(fd);
	return text;
}

static JSValue exists(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	const char *path = JS_ToCString(ctx, argv[0]);
	if (path == NULL)
		return JS_EXCEPTION;
	struct stat status;
	if (stat(path, &status) == 0)
		return JS_TRUE;
	return errno == ENOENT ? JS_FALSE : fail(ctx, "look at", path);
}

static JSValue remove_file(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	const char *path = JS_ToCString(ctx, argv[0]);
	if (path == NULL)
		return JS_EXCEPTION;
	if (unlink(path) < 0 && errno != ENOENT)
		return fail(ctx, "remove", path);
	return JS_UNDEFINED;
}

static JSValue list_directory(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	const char *path = JS_ToCString(ctx, argv[0]);
	if (path == NULL)
		return JS_EXCEPTION;
	JSValue names = JS_NewArray(ctx);
	DIR *directory = opendir(path);
	if (directory == NULL)
		return errno == ENOENT ? names : fail(ctx, "read", path);
	struct dirent *entry;
	for (uint32_t count = 0; errno = 0, (entry = readdir(directory)) != NULL;) {
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			JS_SetPropertyUint32(ctx, names, count++, JS_NewString(ctx, entry->d_name));
	}
	return errno == 0 ? names : fail(ctx, "read", path);
}

static int64_t now_ms(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Waits for a socket no longer than until a deadline. */
static int wait_until(int64_t deadline, int fd, short events)
{
	for (;;) {
		int64_t left = deadline - now_ms();
		if (left <= 0) {
			errno = ETIMEDOUT;
			return -1;
		}
		struct pollfd polled = {.fd = fd, .events = events};
		int ready = poll(&polled, 1, (int)left);
		if (ready > 0)
			return 0;
		if (ready < 0 && errno != EINTR)
			return -1;
	}
}

static int connect_to(const char *path, int64_t deadline)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof address.sun_path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(address.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	do {
		/* unix(7): connect waits while the backlog is full, by this no longer than that. */
		int64_t left = deadline - now_ms();
		struct timeval limit = {.tv_sec = left / 1000, .tv_usec = left % 1000 * 1000};
		if (left <= 0)
			errno = EAGAIN;
		else if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
			 connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
			return fd;
	} while (errno == EINTR);
	int error = errno == EAGAIN ? ETIMEDOUT : errno;
	close(fd);
	errno = error;
	return -1;
}

static int send_all(int fd, const char *bytes, size_t left, int64_t deadline)
{
	while (left > 0) {
		ssize_t sent = send(fd, bytes, left, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent >= 0) {
			bytes += sent;
			left -= sent;
		} else if (errno == EAGAIN) {
			if (wait_until(deadline, fd, POLLOUT) < 0)
				return -1;
		} else if (errno == EPIPE)
			return 0; /* The answer may be there already. */
		else if (errno != EINTR)
			return -1;
	}
	return 0;
}

/* Receives until a newline, which is left out. */
static int receive_line(int fd, Buffer *line, int64_t deadline)
{
	for (;;) {
		if (reserve(line, BUFSIZ) < 0 || wait_until(deadline, fd, POLLIN) < 0)
			return -1;
		char *end = line->bytes + line->length;
		ssize_t got = recv(fd, end, line->capacity - line->length, 0);
		if (got == 0)
			errno = ECONNRESET;
		if (got <= 0)
			return -1;
		char *newline = memchr(end, '\n', got);
		line->length = (newline == NULL ? end + got : newline) - line->bytes;
		if (newline != NULL)
			return 0;
		if (line->length > MAX_REPLY_BYTES) {
			errno = EMSGSIZE;
			return -1;
		}
	}
}

static const char *reason_of(int error)
{
	switch (error) {
	case ETIMEDOUT:
		return "it took too long";
	case EMSGSIZE:
		return "the answer is too long";
	case ECONNRESET:
		return "the connection was closed before an answer came";
	default:
		return strerror(error);
	}
}

static JSValue ask(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	const char *path = JS_ToCString(ctx, argv[0]);
	size_t length;
	const char *request = JS_ToCStringLen(ctx, &length, argv[1]);
	int64_t timeout_ms;
	if (path == NULL || request == NULL || JS_ToInt64(ctx, &timeout_ms, argv[2]) < 0)
		return JS_EXCEPTION;
	int64_t deadline = now_ms() + timeout_ms;
	Buffer line = {0};
	int fd = connect_to(path, deadline);
	if (fd < 0 || send_all(fd, request, length, deadline) < 0 || receive_line(fd, &line, deadline) < 0)
		return JS_ThrowPlainError(ctx, "%s", reason_of(errno));
	return JS_NewStringLen(ctx, line.bytes, line.length);
}

static JSValue canonical_address(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	size_t length;
	const char *text = JS_ToCStringLen(ctx, &length, argv[0]);
	if (text == NULL)
		return JS_EXCEPTION;
	int family = strchr(text, ':') == NULL ? AF_INET : AF_INET6;
	struct in6_addr address;
	char canonical[INET6_ADDRSTRLEN];
	if (strlen(text) != length || inet_pton(family, text, &address) != 1)
		return JS_UNDEFINED;
	inet_ntop(family, &address, canonical, sizeof canonical);
	/* It ends in an IPv4 address where IPv6 stands for one; elsewhere in the product all of it is hexadecimal. */
	if (family == AF_INET6 && strchr(canonical, '.') != NULL)
		sprintf(strrchr(canonical, ':') + 1, "%x:%x", ntohs(address.s6_addr16[6]), ntohs(address.s6_addr16[7]));
	return JS_NewString(ctx, canonical);
}

static JSValue end(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv)
{
	int32_t code;
	if (JS_ToInt32(ctx, &code, argv[0]) < 0)
		return JS_EXCEPTION;
	_exit(code);
}

static JSValue environment(JSContext *ctx)
{
	JSValue variables = JS_NewObjectProto(ctx, JS_NULL);
	for (char **each = environ; *each != NULL; each++) {
		char *equals = strchr(*each, '=');
		if (equals == NULL)
			continue;
		JSAtom name = JS_NewAtomLen(ctx, *each, equals - *each);
		JS_DefinePropertyValue(ctx, variables, name, JS_NewString(ctx, equals + 1), JS_PROP_C_W_E);
		JS_FreeAtom(ctx, name);
	}
	return variables;
}

static const JSCFunctionListEntry FUNCTIONS[] = {
	JS_CFUNC_DEF("readStdin", 0, read_stdin),
	JS_CFUNC_DEF("writeStdout", 1, write_stdout),
	JS_CFUNC_DEF("readFile", 1, read_file),
	JS_CFUNC_DEF("listDirectory", 1, list_directory),
	JS_CFUNC_DEF("exists", 1, exists),
	JS_CFUNC_DEF("remove", 1, remove_file),
	JS_CFUNC_DEF("ask", 3, ask),
	JS_CFUNC_DEF("canonicalAddress", 1, canonical_address),
	JS_CFUNC_DEF("exit", 1, end),
};

/* The language as far as the plugin uses it. There is no compiler in it: the executable runs its own bytecode only. */
static int add_language(JSContext *ctx)
{
	return JS_AddIntrinsicBaseObjects(ctx) | JS_AddIntrinsicRegExp(ctx) | JS_AddIntrinsicJSON(ctx) |
	       JS_AddIntrinsicMapSet(ctx) | JS_AddIntrinsicTypedArrays(ctx);
}

int main(void)
{
	JSRuntime *runtime = JS_NewRuntime();
	JSContext *ctx = runtime == NULL ? NULL : JS_NewContextRaw(runtime);
	if (ctx == NULL || add_language(ctx) != 0)
		return 1;
	/* What a configuration nests too deep for the stack is an error, and no crash. */
	struct rlimit stack;
	if (getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur / 4 < JS_DEFAULT_STACK_SIZE)
		JS_SetMaxStackSize(runtime, stack.rlim_cur / 4);
	JS_SetGCThreshold(runtime, -1);
	JSValue host = JS_NewObject(ctx);
	JS_SetPropertyFunctionList(ctx, host, FUNCTIONS, sizeof FUNCTIONS / sizeof FUNCTIONS[0]);
	JS_SetPropertyStr(ctx, host, "environment", environment(ctx));
	JS_SetPropertyStr(ctx, JS_GetGlobalObject(ctx), "host", host);
	JSValue function = JS_ReadObject(ctx, program, program_size, JS_READ_OBJ_BYTECODE);
	JSValue outcome = JS_IsException(function) ? function : JS_EvalFunction(ctx, function);
	if (JS_IsException(outcome))
		fprintf(stderr, "egress-nat: %s\n", JS_ToCString(ctx, JS_GetException(ctx)));
	/* The plugin ends the process by itself. */
	return 1;
}
