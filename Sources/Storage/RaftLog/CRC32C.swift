/// The Castagnoli checksum (RFC 3720, section B.4), eight bytes a step.
package enum CRC32C {
    /// Eight tables of 256, never freed; written once before anyone reads them, hence safe to share.
    nonisolated(unsafe) private static let tables: UnsafePointer<UInt32> = makeTables()

    private static func makeTables() -> UnsafePointer<UInt32> {
        let tables = UnsafeMutablePointer<UInt32>.allocate(capacity: 8 * 256)
        for byte in 0..<256 {
            var crc = UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? (crc >> 1) ^ 0x82F6_3B78 : crc >> 1 }
            tables[byte] = crc
        }
        for index in 256..<(8 * 256) {
            let before = tables[index - 256]
            tables[index] = (before >> 8) ^ tables[Int(before & 0xFF)]
        }
        return UnsafePointer(tables)
    }

    /// Goes on from `crc`, the checksum of the bytes before these (0 at the start).
    package static func update(_ crc: UInt32, _ bytes: UnsafeRawBufferPointer) -> UInt32 {
        let tables = Self.tables
        var state = ~crc
        var offset = 0
        while offset + 8 <= bytes.count {
            let word =
                UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) ^ UInt64(state)
            var next = tables[1_792 + Int(word & 0xFF)]
            next ^= tables[1_536 + Int((word >> 8) & 0xFF)]
            next ^= tables[1_280 + Int((word >> 16) & 0xFF)]
            next ^= tables[1_024 + Int((word >> 24) & 0xFF)]
            next ^= tables[768 + Int((word >> 32) & 0xFF)]
            next ^= tables[512 + Int((word >> 40) & 0xFF)]
            next ^= tables[256 + Int((word >> 48) & 0xFF)]
            next ^= tables[Int(word >> 56)]
            state = next
            offset += 8
        }
        while offset < bytes.count {
            state = (state >> 8) ^ tables[Int((state ^ UInt32(bytes[offset])) & 0xFF)]
            offset += 1
        }
        return ~state
    }

    /// The checksum of these bytes.
    package static func of(_ bytes: [UInt8]) -> UInt32 { bytes.withUnsafeBytes { update(0, $0) } }
}
