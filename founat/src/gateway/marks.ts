/**
 * The packet mark of what the packet filter has looked at on its way between a client and a destination: without it no
 * route leads out of the tunnel or into it. The marks of clients are small numbers.
 */
export const PASSED_MARK = 0x65670001;

/** The packet mark of what this host sends into a tunnel's port: it leaves by the uplink as it is. */
export const OUTER_MARK = PASSED_MARK + 1;
