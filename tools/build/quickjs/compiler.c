/* Compiles the script on stdin to bytecode, and writes it as C: `program` and `program_size` of the plugin's host.c. */
#include <stdio.h>
#include <stdlib.h>

#include "quickjs.h"

static char *read_all(FILE *file, size_t *length)
{
	char *text = NULL;
	size_t got;
	*length = 0;
	do {
		text = realloc(text, *length + BUFSIZ + 1);
		if (text == NULL)
			return NULL;
		got = fread(text + *length, 1, BUFSIZ, file);
		*length += got;
	} while (got > 0);
	text[*length] = '\0';
	return text;
}

int main(void)
{
	JSContext *ctx = JS_NewContext(JS_NewRuntime());
	size_t length, size = 0;
	char *script = read_all(stdin, &length);
	JSValue function = JS_Eval(ctx, script, length, "plugin", JS_EVAL_FLAG_STRICT | JS_EVAL_FLAG_COMPILE_ONLY);
	uint8_t *bytecode = NULL;
	if (!JS_IsException(function))
		bytecode = JS_WriteObject(ctx, &size, function,
					  JS_WRITE_OBJ_BYTECODE | JS_WRITE_OBJ_STRIP_SOURCE | JS_WRITE_OBJ_STRIP_DEBUG);
	if (bytecode == NULL) {
		fprintf(stderr, "%s\n", JS_ToCString(ctx, JS_GetException(ctx)));
		return 1;
	}
	printf("#include <stddef.h>\n#include <stdint.h>\nconst size_t program_size = %zu;\nconst uint8_t program[] = {", size);
	for (size_t i = 0; i < size; i++)
		printf("%d,", bytecode[i]);
	printf("};\n");
	return 0;
}
