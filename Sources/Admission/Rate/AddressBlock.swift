/// Who counts as one client address: an IPv4 address, or the 64 bits of an IPv6 address that one customer has.
enum AddressBlock: Hashable, Sendable {
    case v4(UInt32)
    case v6(UInt64)
    /// Text that is no address (a Unix socket's path, say), cut to 64 bytes.
    case other(String)

    /// From text as `inet_ntop` writes it, with or without brackets and a zone (`%eth0`). An IPv4 address in IPv6 form
    /// is IPv4.
    init(_ text: String) {
        var address = text[...]
        if address.first == "[" { address = address.dropFirst().prefix { $0 != "]" } }
        address = address.prefix { $0 != "%" }
        if let v4 = Self.v4(address) {
            self = .v4(v4)
        } else if let groups = Self.groups(address) {
            let isMapped = groups[0..<5].allSatisfy { $0 == 0 } && groups[5] == 0xFFFF
            self =
                isMapped
                ? .v4(UInt32(groups[6]) << 16 | UInt32(groups[7]))
                : .v6(groups[0..<4].reduce(0) { $0 << 16 | UInt64($1) })
        } else {
            self = .other(String(decoding: text.utf8.prefix(64), as: UTF8.self))
        }
    }

    private static func v4(_ text: Substring) -> UInt32? {
        let parts = text.split(separator: ".", maxSplits: 4, omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var address: UInt32 = 0
        for part in parts {
            guard let value = UInt8(part), part.utf8.first != 0x2B else { return nil }
            address = address << 8 | UInt32(value)
        }
        return address
    }

    /// The eight groups of an IPv6 address.
    private static func groups(_ text: Substring) -> [UInt16]? {
        guard text.utf8.count <= 45 else { return nil }
        var halves: [[UInt16]] = []
        var rest = text
        while true {
            let gap = rest.firstRange(of: "::")
            guard let half = list(gap.map { rest[..<$0.lowerBound] } ?? rest) else { return nil }
            halves.append(half)
            guard let gap else { break }
            rest = rest[gap.upperBound...]
        }
        if halves.count == 1 { return halves[0].count == 8 ? halves[0] : nil }
        let missing = 8 - halves[0].count - halves[1].count
        guard halves.count == 2, missing > 0 else { return nil }
        return halves[0] + Array(repeating: 0, count: missing) + halves[1]
    }

    private static func list(_ text: Substring) -> [UInt16]? {
        if text.isEmpty { return [] }
        var groups: [UInt16] = []
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        for (place, part) in parts.enumerated() {
            if place == parts.count - 1, let address = v4(part) {
                groups += [UInt16(address >> 16), UInt16(truncatingIfNeeded: address)]
            } else {
                guard (1...4).contains(part.utf8.count), part.utf8.first != 0x2B, let group = UInt16(part, radix: 16)
                else { return nil }
                groups.append(group)
            }
        }
        return groups
    }
}
