public import Foundation

/// Operations that belong together for the app, with one configuration for all that have none of their own.
// @unchecked: its parts lie behind locks; not final, as Apple's is not.
public class CKOperationGroup: NSObject, @unchecked Sendable {
    /// A name that no other group has.
    public let operationGroupID: String = UUID().uuidString
    /// What the app calls it.
    @CKGuarded public var name: String? = nil
    /// How many of something it is about, as the app counts.
    @CKGuarded public var quantity: Int = 0
    /// The configuration of operations that have none of their own.
    @CKGuarded public var defaultConfiguration: CKOperation.Configuration! = CKOperation.Configuration()
    /// About how much will be sent.
    @CKGuarded public var expectedSendSize: TransferSize = .unknown
    /// About how much will be fetched.
    @CKGuarded public var expectedReceiveSize: TransferSize = .unknown

    /// A group without name.
    public override init() { super.init() }

    /// About how much.
    public enum TransferSize: Int, Hashable, Sendable {
        case unknown = 0
        case kilobytes = 1
        case megabytes = 2
        case tensOfMegabytes = 3
        case hundredsOfMegabytes = 4
        case gigabytes = 5
        case tensOfGigabytes = 6
        case hundredsOfGigabytes = 7
    }
}
