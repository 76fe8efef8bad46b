package import RecordModel
package import Wire

/// A place in one life of one zone's change feed, as clients keep it; opaque to them.
///
/// - A plain token says: the client knows everything up to `sequence`.
/// - A walk from the beginning carries `since`, the zone's sequence when it began: whatever the client has got was
///   there then, so tombstones up to `since` do not concern it.
/// - A reverse walk carries the sequences between which it goes, newest first; it ends with the plain token of `high`.
package struct ZoneToken: Hashable, Sendable, WireCodable {
    package struct Reverse: Hashable, Sendable {
        /// The client knew everything up to here.
        package var low: UInt64
        /// The zone's sequence when the walk began.
        package var high: UInt64
        /// The last sequence that was looked at; the walk goes on below.
        package var position: UInt64

        package init(low: UInt64, high: UInt64, position: UInt64) {
            self.low = low
            self.high = high
            self.position = position
        }
    }

    /// Says which zone the token is of.
    package var zoneHash: UInt64
    package var incarnation: UInt64
    /// In a reverse walk the same as its `low`.
    package var sequence: UInt64
    /// Not below `sequence`, where it is there.
    package var since: UInt64?
    package var reverse: Reverse?

    package init(zone: ZoneKey, incarnation: UInt64, sequence: UInt64) {
        zoneHash = Self.hash(zone)
        self.incarnation = incarnation
        self.sequence = sequence
    }

    /// The plain token of a zone as it is now: the client that gets it knows everything.
    package static func current(_ zone: ZoneKey, _ state: ZoneState) -> [UInt8] {
        ZoneToken(zone: zone, incarnation: state.incarnation, sequence: state.sequence).encoded()
    }

    /// 1 zone hash, 2 incarnation, 3 sequence, 4 since, 5 to 7 a reverse walk's low, high and position.
    package func encode(to writer: inout WireWriter) {
        writer.field(1, zoneHash)
        writer.field(2, incarnation)
        writer.field(3, sequence)
        if let since { writer.field(4, since) }
        if let reverse {
            writer.field(5, reverse.low)
            writer.field(6, reverse.high)
            writer.field(7, reverse.position)
        }
    }

    /// - Throws: `WireError` if the bytes are no token of this form; a retry does not help.
    package init(from reader: inout WireReader) throws(WireError) {
        var numbers: [UInt64?] = Array(repeating: nil, count: 8)
        while let field = try reader.nextField() {
            guard (1...7).contains(field) else { throw .invalidValue(field: field) }
            numbers[field] = try reader.unsigned()
        }
        guard let hash = numbers[1], let incarnation = numbers[2], let sequence = numbers[3] else {
            throw .missingField(1)
        }
        zoneHash = hash
        self.incarnation = incarnation
        self.sequence = sequence
        since = numbers[4]
        if let since, since < sequence { throw .invalidValue(field: 4) }
        switch (numbers[5], numbers[6], numbers[7]) {
        case (let low?, let high?, let position?):
            guard low == sequence, low < position, position <= high, since == nil else { throw .invalidValue(field: 5) }
            reverse = Reverse(low: low, high: high, position: position)
        case (nil, nil, nil): reverse = nil
        default: throw .missingField(5)
        }
    }

    /// FNV-1a over the zone's key.
    static func hash(_ zone: ZoneKey) -> UInt64 {
        fnv1a(zone.encoded())
    }
}
