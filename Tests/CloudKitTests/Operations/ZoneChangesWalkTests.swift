import Testing

@testable import CloudKit

@Suite("Walking through the changes of zones")
struct ZoneChangesWalkTests {
    private func zone(_ number: Int) -> CKRecordZone.ID { CKRecordZone.ID(zoneName: "zone-\(number)") }

    private func walk(_ count: Int, isToTheEnd: Bool = true) -> ZoneChangesWalk {
        ZoneChangesWalk((0..<count).map { ZoneChangesCall(zone: zone($0)) }, isToTheEnd: isToTheEnd)
    }

    private func page(_ token: String, hasMore: Bool) -> Result<ZoneChangesPage, CKError> {
        let change = ZoneChange.deleted(CKRecord.ID(recordName: "r"), "")
        return .success(ZoneChangesPage(changes: [change], token: CKServerChangeToken(token), hasMore: hasMore))
    }

    @Test("A zone is asked for until it ends, each time from its newest token on")
    func toTheEnd() {
        var walk = walk(2)
        #expect(walk.next()?.map(\.zone) == [zone(0), zone(1)])
        guard case .goesOn = walk.received(page("a", hasMore: true), of: zone(0)) else {
            Issue.record("it ended")
            return
        }
        guard case .ends(_, hasMore: false) = walk.received(page("b", hasMore: false), of: zone(1)) else {
            Issue.record("it goes on")
            return
        }
        #expect(walk.next()?.map(\.zone) == [zone(0)])
        #expect(walk.next()?.first?.token?.value == "a")
        _ = walk.received(page("c", hasMore: false), of: zone(0))
        #expect(walk.next() == nil && walk.unfinished.isEmpty)
    }

    @Test("One page of each zone ends the walk where no more is wanted, and says that there is more")
    func onePage() {
        var walk = walk(1, isToTheEnd: false)
        guard case .ends(_, hasMore: true) = walk.received(page("a", hasMore: true), of: zone(0)) else {
            Issue.record("it goes on")
            return
        }
        #expect(walk.next() == nil)
    }

    @Test("A zone that fails is left out from then on; one that does not get on is given up")
    func failures() {
        var walk = walk(2)
        _ = walk.received(.failure(CKError(.zoneNotFound, reason: "gone")), of: zone(0))
        #expect(walk.next()?.map(\.zone) == [zone(1)])
        let stuck = Result<ZoneChangesPage, CKError>.success(
            ZoneChangesPage(changes: [], token: CKServerChangeToken("a"), hasMore: true))
        guard case .goesOn = walk.received(stuck, of: zone(1)) else {
            Issue.record("an empty page is no end")
            return
        }
        guard case .fails = walk.received(stuck, of: zone(1)) else {
            Issue.record("it would go on for ever")
            return
        }
        #expect(walk.next() == nil)
        #expect(Set(walk.errors.keys) == [zone(0), zone(1)] as Set<AnyHashable>)
    }

    @Test("Not all zones are asked for at once, and a zone named twice is walked once")
    func bounded() {
        let many = walk(ZoneChangesWalk.zonesMax + 5)
        #expect(many.next()?.count == ZoneChangesWalk.zonesMax)
        let twice = ZoneChangesWalk([ZoneChangesCall(zone: zone(1)), ZoneChangesCall(zone: zone(1))], isToTheEnd: true)
        #expect(twice.next()?.count == 1)
    }
}
