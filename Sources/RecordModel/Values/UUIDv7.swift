package import Wire

/// A time-ordered UUID (RFC 9562, section 5.7): 48 bits of milliseconds since 1970, then randomness.
package struct UUIDv7: Hashable, Comparable, Sendable {
    private var high: UInt64
    private var low: UInt64

    /// - Parameters:
    ///   - milliseconds: since 1970.
    ///   - random: 128 bits, of which 74 are used.
    package init(milliseconds: Int64, random: (UInt64, UInt64)) {
        high = UInt64(bitPattern: milliseconds << 16) | 0x7000 | random.0 & 0x0FFF
        low = 0x8000_0000_0000_0000 | random.1 & 0x3FFF_FFFF_FFFF_FFFF
    }

    /// Sixteen bytes, with version and variant set.
    package init(_ bytes: [UInt8]) {
        precondition(bytes.count == 16, "a UUID of \(bytes.count) bytes")
        high = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) } & ~0xF000 | 0x7000
        low = bytes[8...].reduce(0) { $0 << 8 | UInt64($1) } & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
    }

    /// Reads hexadecimal digits of either case in groups of 8, 4, 4, 4 and 12.
    /// - Returns: nil for what is no UUID of version 7.
    package init?(_ text: String) {
        var (high, low): (UInt64, UInt64) = (0, 0)
        var place = 0
        for byte in text.utf8 {
            if place == 8 || place == 13 || place == 18 || place == 23 {
                guard byte == UInt8(ascii: "-") else { return nil }
            } else {
                guard place < 36, let digit = Self.digit(byte) else { return nil }
                if place < 18 { high = high << 4 | digit } else { low = low << 4 | digit }
            }
            place += 1
        }
        guard place == 36, high >> 12 & 0xF == 7 else { return nil }
        self.high = high
        self.low = low
    }

    private static func digit(_ byte: UInt8) -> UInt64? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt64(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt64(byte - UInt8(ascii: "a") + 10)
        case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt64(byte - UInt8(ascii: "A") + 10)
        default: nil
        }
    }

    /// When it was made, in milliseconds since 1970.
    package var milliseconds: Int64 { Int64(high >> 16) }

    /// The same, of a key that may be such a UUID; nil for any other.
    package static func milliseconds(of key: [UInt8]) -> Int64? {
        key.count == 16 && key[6] >> 4 == 7 ? UUIDv7(key).milliseconds : nil
    }

    /// By time first.
    package static func < (left: Self, right: Self) -> Bool { (left.high, left.low) < (right.high, right.low) }

    /// Sixteen bytes, the most significant first, so that keys made of them sort by time.
    package var bytes: [UInt8] {
        withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { Array($0) }
    }

    /// With upper-case digits.
    package var text: String {
        String(unsafeUninitializedCapacity: 36) { text in
            var place = 0
            for digit in 0..<32 {
                if digit == 8 || digit == 12 || digit == 16 || digit == 20 {
                    text[place] = UInt8(ascii: "-")
                    place += 1
                }
                let half = (digit < 16 ? high : low) >> UInt64(60 - 4 * (digit % 16)) & 0xF
                text[place] = UInt8(half < 10 ? 0x30 + half : 0x37 + half)
                place += 1
            }
            return place
        }
    }
}

/// Its sixteen bytes.
extension UUIDv7: WireValue {
    package func write(_ number: Int, to writer: inout WireWriter) { writer.field(number, bytes) }

    package init(field reader: inout WireReader) throws(WireError) {
        let bytes = try reader.array()
        guard bytes.count == 16 else { throw .invalidValue(field: reader.number) }
        self.init(bytes)
    }
}

/// How the time of a shard follows the times of its commands.
///
/// A command carries the clock of the node that made it, and any node's clock may be wrong. So no command moves a
/// shard's time by more than `stepMax`, forward or back. The time of a shard serves only to forget what is old; what a
/// client sees is judged and stamped by the time of its own command.
package enum ShardClock {
    /// How far a command moves the time of a shard, in milliseconds. Clocks that differ by less are taken to agree.
    package static let stepMax: Int64 = 60_000
    /// How far a maintenance command moved it before `FeatureLevel.evenSteps`.
    package static let hourStepMax: Int64 = 3_600_000
    /// How far a shard without traffic may lag behind its leader's clock before maintenance brings it there.
    package static let lagMax: Int64 = 3_600_000

    /// The time of a shard after a command.
    /// - Parameter time: the time before it; 0 at the beginning.
    package static func time(_ time: Int64, after command: Int64, stepMax: Int64 = stepMax) -> Int64 {
        if time == 0 { return command }
        let (ahead, isFar) = command.subtractingReportingOverflow(time)
        if command > time { return isFar || ahead > stepMax ? time + stepMax : command }
        guard isFar || ahead < -Self.stepMax else { return time }
        return isFar || ahead < -stepMax ? time - stepMax : command
    }

    /// The time that a change is stamped with: its command's, or the last one's where the two differ by no more than
    /// clocks do.
    package static func stamp(of command: Int64, notBefore last: Int64) -> Int64 {
        let (behind, isFar) = last.subtractingReportingOverflow(command)
        return !isFar && (1...stepMax).contains(behind) ? last : command
    }
}
