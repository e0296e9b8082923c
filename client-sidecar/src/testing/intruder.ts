/** What must never run inside the plugin. */
console.log("intruder");
