package import RecordModel
package import Wire

/// A place in one life of one zone's change feed, as clients keep it; opaque to them.
///
/// - A plain token says: the client knows everything up to `sequence`.
/// - A walk from the beginning carries `since`, the zone's sequence when it began: whatever the client has got was
///   there then, so tombstones up to `since` do not concern it.
/// - A reverse walk carries the sequences between which it goes, newest first; it ends with the plain token of `high`.
package struct ZoneToken: Hashable, Sendable, WireCodable {
    /// A walk towards older changes: those above `low` and below `position` are still to come.
    package struct Reverse: Hashable, Sendable {
        /// The client knew everything up to here.
        package var low: UInt64
        /// The zone's sequence when the walk began.
        package var high: UInt64
        /// The last sequence that was looked at; the walk goes on below.
        package var position: UInt64
    }

    /// Says which zone the token is of.
    package var zoneHash: UInt64
    /// The life of the zone that the token is of; in any other life the token is expired.
    package var incarnation: UInt64
    /// In a reverse walk the same as its `low`.
    package var sequence: UInt64
    /// Not below `sequence`, where it is there.
    package var since: UInt64?
    /// Nil unless the walk goes backwards; never together with `since`.
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

/// One page's way through a zone's sequences, decided from the token alone.
struct ZoneWalk {
    /// Sequences strictly above and strictly below these are looked at.
    var lower: Int64
    var upper: Int64
    var isReverse: Bool
    /// The token that the walk goes on from.
    private let base: ZoneToken
    /// The zone's sequence now.
    private let end: UInt64

    /// - Throws: the error for a token that is not of this life of this zone, or that is expired.
    init(_ request: ZoneChangesRequest, zone: ZoneRow) throws(ServiceError) {
        end = UInt64(bitPattern: zone.sequence)
        let incarnation = UInt64(bitPattern: zone.incarnation)
        var token = ZoneToken(zone: request.zone, incarnation: incarnation, sequence: 0)
        if let bytes = request.token, !bytes.isEmpty {
            token = try Self.token(bytes, of: request.zone)
            try Self.check(token, zone: zone)
        } else if !request.isReverse {
            // Who knows nothing yet needs no tombstones from before. Who has a token of an empty zone may know records
            // that it made since.
            token.since = end
        }
        if request.isReverse && token.reverse == nil && token.since == nil && token.sequence < end {
            token.reverse = ZoneToken.Reverse(low: token.sequence, high: end, position: end + 1)
        }
        base = token
        if let reverse = token.reverse {
            isReverse = true
            lower = Int64(reverse.low)
            upper = Int64(reverse.position)
        } else {
            isReverse = false
            lower = Int64(token.sequence)
            upper = Int64.max
        }
    }

    private static func token(_ bytes: [UInt8], of zone: ZoneKey) throws(ServiceError) -> ZoneToken {
        guard let token = try? ZoneToken(decoding: bytes) else {
            throw FeedErrors.unknownToken("these bytes are no token of ours")
        }
        guard token.zoneHash == ZoneToken.hash(zone) else {
            throw FeedErrors.unknownToken("the token is of another zone")
        }
        return token
    }

    private static func check(_ token: ZoneToken, zone: ZoneRow) throws(ServiceError) {
        guard token.incarnation == UInt64(bitPattern: zone.incarnation) else {
            throw FeedErrors.expired("the zone was deleted and made anew, or restored, since the token was given")
        }
        let sequence = UInt64(bitPattern: zone.sequence)
        guard max(token.sequence, token.since ?? 0, token.reverse?.high ?? 0) <= sequence else {
            throw FeedErrors.expired("the token is of a future that was lost")
        }
        // Up to where the client needs no tombstones: see `ZoneToken`.
        let known = max(token.sequence, token.since ?? 0, token.sequence == 0 ? token.reverse?.high ?? 0 : 0)
        guard known >= UInt64(bitPattern: zone.floor) else {
            throw FeedErrors.expired("tombstones older than the token's have been removed")
        }
    }

    /// The token of a page that looked at the rows up to `last`, and left more.
    func token(after last: Int64) -> ZoneToken {
        var token = base
        if isReverse {
            token.reverse?.position = UInt64(last)
        } else {
            token.sequence = UInt64(last)
            if let since = token.since, since <= token.sequence { token.since = nil }
        }
        return token
    }

    /// The token of the last page.
    func tokenAtEnd() -> ZoneToken {
        var token = base
        token.sequence = base.reverse?.high ?? end
        token.since = nil
        token.reverse = nil
        return token
    }
}
