/** Of the product: all its programs are released together. */
export const VERSION = "0.1.0";
