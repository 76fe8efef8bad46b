/// The 64-bit FNV-1a checksum of some bytes: the same on every node and in every version. It guards against mistakes,
/// not against malice.
package func fnv1a(_ bytes: [UInt8]) -> UInt64 {
    bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
}
