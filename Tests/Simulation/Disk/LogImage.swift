import Storage

/// What the files of a node's log say, read without the code that wrote them.
enum LogImage {
    private static let headerBytes = 64
    private static let watermarkKind: UInt8 = 7

    /// The segments in use, oldest first. Others are prepared for later; what they hold is of an earlier use.
    static func used(in folder: String) -> [(name: String, bytes: [UInt8])] {
        let names = ((try? listFolder(at: folder)) ?? []).filter { $0.hasSuffix(".seg") }.sorted()
        return names.compactMap { name in
            guard let bytes = try? readWholeFile(at: "\(folder)/\(name)"), bytes.count > headerBytes,
                number(in: bytes, at: 16) == UInt64(name.dropLast(4))
            else { return nil }
            return (name, bytes)
        }
    }

    /// Where the last record of a segment begins: each says how long it is, and at which address. What an earlier use
    /// of the file left has other addresses.
    static func startOfLastRecord(in bytes: [UInt8]) -> Int {
        let segment = number(in: bytes, at: 16)
        var (last, next) = (headerBytes, headerBytes)
        while next + 32 <= bytes.count, number(in: bytes, at: next + 8) == segment << 32 | UInt64(next) {
            last = next
            next += 32 + (Int(number(in: bytes, at: next, count: 4)) + 7) & ~7
        }
        return last
    }

    /// Whether the end of a log says that everything before it is durable, as it does after an orderly stop: damage to
    /// what was acknowledged then passes for no torn write.
    static func isVouchedFor(in folder: String) -> Bool {
        guard let bytes = used(in: folder).last?.bytes else { return true }
        let last = startOfLastRecord(in: bytes)
        // Nothing was written to the segment: its header speaks for those before it.
        guard number(in: bytes, at: last + 8) == number(in: bytes, at: 16) << 32 | UInt64(last) else { return true }
        // What stands first in a segment has the header before it.
        return bytes[last + 28] == watermarkKind
            && (last == headerBytes || number(in: bytes, at: last + 16) == number(in: bytes, at: last + 8))
    }

    private static func number(in bytes: [UInt8], at offset: Int, count: Int = 8) -> UInt64 {
        bytes[offset..<offset + count].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
}
