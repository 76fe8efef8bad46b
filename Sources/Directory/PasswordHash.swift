package import Wire

/// What is kept of a password: the result of scrypt, with what it takes to compute it again. Data only; who hashes and
/// compares is the target Admission.
package struct PasswordHash: Hashable, Sendable {
    /// Random, 16 bytes.
    package var salt: [UInt8]
    /// The binary logarithm of scrypt's N.
    package var logN: UInt8
    package var r: UInt32
    package var p: UInt32
    package var hash: [UInt8]

    package init(salt: [UInt8], logN: UInt8, r: UInt32, p: UInt32, hash: [UInt8]) {
        self.salt = salt
        self.logN = logN
        self.r = r
        self.p = p
        self.hash = hash
    }
}

extension PasswordHash: WireCodable {
    /// 1 salt, 2 log N, 3 r, 4 p, 5 hash.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, salt)
        writer.field(2, UInt64(logN))
        writer.field(3, UInt64(r))
        writer.field(4, UInt64(p))
        writer.field(5, hash)
    }

    package init(from reader: inout WireReader) throws(WireError) {
        self.init(salt: [], logN: 0, r: 0, p: 0, hash: [])
        while let field = try reader.nextField() {
            switch field {
            case 1: salt = try reader.array()
            case 2: logN = try Self.number(&reader, field)
            case 3: r = try Self.number(&reader, field)
            case 4: p = try Self.number(&reader, field)
            case 5: hash = try reader.array()
            default: try reader.skip()
            }
        }
    }

    private static func number<Number: FixedWidthInteger>(
        _ reader: inout WireReader, _ field: Int
    ) throws(WireError) -> Number {
        guard let number = Number(exactly: try reader.unsigned()) else { throw .invalidValue(field: field) }
        return number
    }
}
