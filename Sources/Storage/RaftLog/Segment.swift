/// One file of the log.
final class Segment: Sendable {
    /// Grows with every use of a file, so it is also the generation of the records in it.
    let number: UInt64
    let file: DiskFile
    let sizeBytes: Int
    /// Whether it was the reserve before it came into use.
    let wasReserve: Bool

    init(number: UInt64, file: DiskFile, sizeBytes: Int, wasReserve: Bool = false) {
        self.number = number
        self.file = file
        self.sizeBytes = sizeBytes
        self.wasReserve = wasReserve
    }

    var name: String { Self.name(number) }

    static func name(_ number: UInt64) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, 16 - digits.count)) + digits + ".seg"
    }

    /// The number in a segment's file name; nil for other names.
    static func number(ofName name: String) -> UInt64? {
        guard name.hasSuffix(".seg"), let number = UInt64(name.dropLast(4)), self.name(number) == name else {
            return nil
        }
        return number
    }
}
