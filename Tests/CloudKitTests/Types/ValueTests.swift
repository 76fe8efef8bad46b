import Foundation
import Testing

@testable import CloudKit

@Suite("Values of a record, by sdk-surface section 3")
struct ValueTests {
    private let record = CKRecord(recordType: "Thing")

    @Test("an integer reads as every type of number and as Bool")
    func integers() {
        record["n"] = 1
        #expect(record["n"] as? Int64 == 1)
        #expect(record["n"] as? Int == 1)
        #expect(record["n"] as? UInt8 == 1)
        #expect(record["n"] as? Double == 1)
        #expect(record["n"] as? Float == 1)
        #expect(record["n"] as? Bool == true)
        #expect((record["n"] as? NSNumber)?.intValue == 1)
        #expect(record["n"] as? String == nil)
        #expect(record.object(forKey: "n") as? Int64 == 1)
    }

    @Test("a fraction reads as Double, and as no integer by a cast")
    func fractions() {
        record["n"] = 3.5
        #expect(record["n"] as? Double == 3.5)
        #expect(record["n"] as? TimeInterval == 3.5)
        #expect(record["n"] as? Int == nil)
        record["n"] = Float(0.25)
        #expect(record["n"] as? Double == 0.25)
    }

    @Test("a Bool is an integer of 0 or 1")
    func bools() {
        record["flag"] = true
        #expect(record["flag"] as? Bool == true)
        #expect(record["flag"] as? Int64 == 1)
        #expect(record.snapshot().values["flag"] == .int64(1))
        record["flag"] = false
        #expect(record["flag"] as? Bool == false)
    }

    @Test("every width of integer is kept as 64 bits with a sign")
    func widths() {
        record["a"] = Int8(-8)
        record["b"] = UInt16(16)
        record["c"] = Int32(-32)
        record["d"] = UInt64(64)
        record["e"] = UInt(7)
        record["f"] = Int64.min
        let values = record.snapshot().values
        #expect(values["a"] == .int64(-8))
        #expect(values["b"] == .int64(16))
        #expect(values["c"] == .int64(-32))
        #expect(values["d"] == .int64(64))
        #expect(values["e"] == .int64(7))
        #expect(values["f"] == .int64(.min))
    }

    @Test("an NSNumber keeps the kind of number it was made of")
    func boxedNumbers() {
        record["a"] = NSNumber(value: 3.0)
        record["b"] = NSNumber(value: 3)
        record["c"] = NSNumber(value: true)
        record["d"] = NSNumber(value: UInt64.max)
        let values = record.snapshot().values
        #expect(values["a"] == .double(3))
        #expect(values["b"] == .int64(3))
        #expect(values["c"] == .int64(1))
        #expect(values["d"]?.fault != nil)
    }

    @Test("text, dates and bytes read as Swift's types and as Foundation's")
    func bridging() {
        let date = Date(timeIntervalSince1970: 1.5)
        record["s"] = "text"
        record["d"] = date
        record["b"] = Data([1, 2])
        #expect(record["s"] as? String == "text")
        #expect(record["s"] as? NSString == "text")
        #expect(record["d"] as? Date == date)
        #expect((record["d"] as? NSDate)?.timeIntervalSince1970 == 1.5)
        #expect(record["b"] as? Data == Data([1, 2]))
        #expect((record["b"] as? NSData)?.length == 2)
        record["s"] = "boxed" as NSString
        record["d"] = date as NSDate
        record["b"] = NSData(data: Data([3]))
        #expect(record["s"] as? String == "boxed")
        #expect(record["d"] as? Date == date)
        #expect(record["b"] as? Data == Data([3]))
    }

    @Test("lists read as arrays of every type their elements read as")
    func lists() {
        record["s"] = ["a", "b"]
        record["n"] = [1, 2]
        record["x"] = [1.5, 2]
        record["d"] = [Date(timeIntervalSince1970: 0)]
        record["b"] = [Data([1])]
        record["e"] = [String]()
        record["m"] = NSArray(array: [1, 2.5])
        #expect(record["s"] as? [String] == ["a", "b"])
        #expect((record["s"] as? NSArray)?.count == 2)
        #expect((record["s"] as? [any CKRecordValueProtocol])?.count == 2)
        #expect(record["n"] as? [Int] == [1, 2])
        #expect(record["n"] as? [Int64] == [1, 2])
        #expect(record["n"] as? [Double] == [1, 2])
        #expect(record["x"] as? [Double] == [1.5, 2])
        #expect(record["d"] as? [Date] == [Date(timeIntervalSince1970: 0)])
        #expect(record["b"] as? [Data] == [Data([1])])
        #expect(record["e"] as? [Int] == [])
        #expect(record["m"] as? [Double] == [1, 2.5], "one fraction makes all doubles")
    }

    @Test("places, references and assets come back as they were set")
    func objects() {
        let place = CLLocation(latitude: 51.5, longitude: -0.12)
        let reference = CKRecord.Reference(recordID: CKRecord.ID(recordName: "other"), action: .deleteSelf)
        let asset = CKAsset(fileURL: URL(filePath: "/tmp/picture"))
        record["place"] = place
        record["reference"] = reference
        record["asset"] = asset
        record["references"] = [reference, reference]
        #expect(record["place"] as? CLLocation === place)
        #expect(record["reference"] as? CKRecord.Reference == reference)
        #expect((record["asset"] as? CKAsset)?.fileURL == asset.fileURL)
        #expect(record["references"] as? [CKRecord.Reference] == [reference, reference])
    }

    @Test("the subscript by type converts numbers, cuts fractions and gives nil where a value does not fit")
    func typedSubscript() {
        record["n"] = 300
        record["x"] = -2.75
        record["s"] = "text"
        let int: Int? = record["n"]
        let byte: UInt8? = record["n"]
        let double: Double? = record["n"]
        let flag: Bool? = record["n"]
        let cut: Int? = record["x"]
        let positive: UInt? = record["x"]
        let boxed: NSNumber? = record["n"]
        let text: String? = record["s"]
        let wrong: Date? = record["s"]
        let wrongNumber: Int? = record["s"]
        let absent: String? = record["nothing"]
        #expect(int == 300 && byte == nil && double == 300 && flag == true)
        #expect(cut == -2 && positive == nil && boxed?.intValue == 300)
        #expect(text == "text" && wrong == nil && wrongNumber == nil && absent == nil)
    }

    @Test("the subscript by type sets, and an empty optional removes")
    func typedSetting() {
        var name: String? = "x"
        record["name"] = name
        #expect(record["name"] as? String == "x")
        name = nil
        record["name"] = name
        #expect(record["name"] == nil)
        #expect(record.allKeys() == [])
    }

    @Test("setting nil removes, and keys come sorted")
    func keys() {
        record["b"] = 1
        record["a"] = "x"
        record["c"] = 2.5
        record["b"] = nil
        #expect(record.allKeys() == ["a", "c"])
        #expect(record["b"] == nil)
        #expect(record.map(\.0) == ["a", "c"])
        #expect(Array(record).first?.1 as? String == "x")
    }

    @Test("key-value coding sets and reads fields, and properties where no field has the name")
    func keyValueCoding() {
        record.setValue("Cafe", forKey: "name")
        record.setValue("a field of its own", forKey: "description")
        record.setValuesForKeys(["n": 1, "flag": true, "gone": NSNull(), "list": ["a"]])
        #expect(record.value(forKey: "name") as? String == "Cafe")
        #expect(record.value(forKey: "description") as? String == "a field of its own")
        #expect(record["n"] as? Int == 1)
        #expect(record["flag"] as? Bool == true)
        #expect(record["list"] as? [String] == ["a"])
        #expect(record.allKeys() == ["description", "flag", "list", "n", "name"])
        #expect(record.value(forKey: "recordID") as? CKRecord.ID == record.recordID)
        #expect(record.value(forKey: "nothing") == nil)
        let several = record.dictionaryWithValues(forKeys: ["n", "nothing", "recordType", "n"])
        #expect(several.count == 3 && several["n"] as? Int == 1 && several["nothing"] is NSNull)
        #expect(several["recordType"] as? String == record.recordType)
        record.setValue(nil, forKey: "name")
        #expect(record["name"] == nil)
    }

    @Test("what no field can hold fails when it is saved, and the error names the field")
    func unusable() throws {
        let valid = record.snapshot()
        #expect(throws: Never.self) { try valid.validate() }
        let faults: [(Any, String)] = [
            (["a": 1], "Dictionary"), ([["a"]], "a list within a list"), (UInt64.max, "greater than"),
            (Double.nan, "not finite"), (NSArray(array: ["a", 1]), "mixed types"), ([Date(), NSNull()], "NSNull"),
        ]
        for (value, text) in faults {
            record.setValue(value, forKey: "wrong")
            let snapshot = record.snapshot()
            let error = #expect(throws: CKError.self) { try snapshot.validate() }
            #expect(error?.code == .invalidArguments)
            #expect(error?.localizedDescription.contains("\"wrong\"") == true)
            #expect(error?.localizedDescription.contains(text) == true, "\(error?.localizedDescription ?? "")")
        }
    }

    @Test("encrypted values are a view of their own, and a key is either encrypted or not")
    func encrypted() {
        record.encryptedValues["secret"] = "hidden"
        record["open"] = 1
        let text: String? = record.encryptedValues["secret"]
        #expect(text == "hidden")
        #expect(record.encryptedValues["secret"] as? NSString == "hidden")
        #expect(record["secret"] == nil)
        #expect(record.encryptedValues["open"] == nil)
        #expect(record.allKeys() == ["open"])
        #expect(record.encryptedValues.allKeys() == ["secret"])
        #expect(record.encryptedValues.changedKeys() == ["secret"])
        #expect(record.changedKeys() == ["open", "secret"])
        #expect(record.snapshot().encryptedKeys == ["secret"])
        record["secret"] = "plain"
        #expect(record.encryptedValues["secret"] == nil)
        #expect(record["secret"] as? String == "plain")
        record.encryptedValues["open"] = nil
        #expect(record["open"] as? Int == 1, "removing it in one form leaves the other")
    }

    @Test("tokens are the words of text fields, each once")
    func tokens() {
        record["a"] = "The quick, quick fox"
        record["n"] = 1
        record.encryptedValues["secret"] = "hidden"
        #expect(record.allTokens() == ["The", "fox", "quick"])
    }

    @Test("a description holds no values")
    func description() {
        record["name"] = "somebody's secret"
        #expect(!"\(record)".contains("secret"))
        #expect("\(record)".contains("keys=[\"name\"]"))
    }
}
