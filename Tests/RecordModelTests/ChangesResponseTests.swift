import Testing

@testable import RecordModel

@Suite("Responses of feeds, users and conflicts")
struct ChangesResponseTests {
    private func record(_ fields: [Fields.Field]) -> Record {
        let stamp = Stamp(timestamp: 1, user: "_a")
        return Record(
            name: "r", type: "T", changeTag: ChangeTag(incarnation: 1, sequence: 2), created: stamp, modified: stamp,
            fields: Fields(fields))
    }

    @Test("the parent is a member of its own, whatever keys are desired, and no field")
    func parent() {
        let child = record([
            .init(name: "___parent", value: .reference(Reference(recordName: "p"))), .init(name: "a", value: .int64(1)),
        ])
        let whole = text { $0.record(child) }
        #expect(whole.contains(#""fields":{"a":{"value":1,"type":"INT64"}}"#))
        #expect(whole.contains(#""deleted":false,"parent":{"recordName":"p"}}"#))
        #expect(text { $0.record(child, desiredKeys: []) }.contains(#""parent":{"recordName":"p"}"#))
        #expect(!text { $0.record(record([])) }.contains("parent"))
    }

    @Test("entries of the database's feed are zones, those of deleted zones say so")
    func database() {
        let zone = ZoneID(name: "Z", owner: "_u")
        let id = #""zoneID":{"zoneName":"Z","ownerRecordName":"_u","zoneType":"REGULAR_CUSTOM_ZONE"}"#
        #expect(text { $0.changedZone(zone, incarnation: 3, isDeleted: false) } == "{\(id),\"incarnation\":3}")
        #expect(text { $0.changedZone(zone, incarnation: 3, isDeleted: true) } == "{\(id),\"deleted\":true}")
    }

    @Test("entries of the zone's feed have every key, the older form has them at its top level")
    func zone() {
        let id = #""zoneID":{"zoneName":"Z","zoneType":"REGULAR_CUSTOM_ZONE"}"#
        let members = #""records":[],"moreComing":true,"syncToken":"QQ==""#
        let zone = ZoneID(name: "Z")
        #expect(
            text { $0.zoneChanges(zone, records: Array("[]".utf8), moreComing: true, syncToken: [65]) }
                == "{\(id),\(members)}")
        let older = text { writer in
            writer.object {
                $0.changesMembers(records: Array("[]".utf8), moreComing: true, syncToken: [65], isReverse: false)
            }
        }
        #expect(older == "{\(members),\"reverse\":false}")
    }

    @Test("identities in both shapes; who is not discoverable has no names")
    func users() {
        let info = LookupInfo(emailAddress: "a@b")
        let known = UserIdentity(userRecordName: "_u", givenName: "Zoë", familyName: "K", lookupInfo: info)
        #expect(
            text { $0.identity(known) }
                == #"{"userRecordName":"_u","nameComponents":{"givenName":"Zoë","familyName":"K"},"#
                + #""lookupInfo":{"emailAddress":"a@b"}}"#)
        #expect(
            text { $0.legacyUser(known) }
                == #"{"userRecordName":"_u","firstName":"Zoë","lastName":"K","emailAddress":"a@b"}"#)
        let hidden = UserIdentity(userRecordName: "_u")
        #expect(text { $0.identity(hidden) } == #"{"userRecordName":"_u"}"#)
        #expect(text { $0.legacyUser(hidden) } == #"{"userRecordName":"_u"}"#)
        let unknown = UserIdentity(
            userRecordName: nil, lookupInfo: LookupInfo(phoneNumber: "+1", userRecordName: "_x"))
        #expect(text { $0.identity(unknown) } == #"{"lookupInfo":{"phoneNumber":"+1","userRecordName":"_x"}}"#)
    }

    @Test("a conflict carries the server's record")
    func conflict() throws {
        let error = ServiceError(.conflict, "client oplock error updating record")
        let server = record([.init(name: "a", value: .int64(.max))])
        let written = json(
            text { $0.recordError(recordName: "r", error, serverRecord: server, numbersAsStrings: true) })
        #expect(written["serverErrorCode"]?.string == "CONFLICT" && written["recordName"]?.string == "r")
        let own = try #require(written["serverRecord"])
        #expect(own["recordChangeTag"]?.string == "1.2" && own["serverErrorCode"] == nil)
        #expect(own["fields"]?["a"]?["value"]?.string == "9223372036854775807")
        #expect(!text { $0.recordError(recordName: "r", error) }.contains("serverRecord"))
    }
}
