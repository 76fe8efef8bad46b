import RecordModel
import Wire

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
        }
        // Who knows nothing yet needs no tombstones from before.
        if token.sequence == 0 && token.reverse == nil && token.since == nil && !request.isReverse { token.since = end }
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
        let known = max(token.sequence, token.since ?? 0, token.sequence == 0 ? token.reverse?.high ?? sequence : 0)
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
