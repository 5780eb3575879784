# Someone comes from MQSim, with a device and a trace: how does Floatgate simulate them?
cat >ssdconfig.xml <<'XML'
<?xml version="1.0" encoding="us-ascii"?>
<Execution_Parameter_Set>
  <Device_Parameter_Set>
    <Flash_Channel_Count>4</Flash_Channel_Count>
    <Chip_No_Per_Channel>2</Chip_No_Per_Channel>
    <Flash_Parameter_Set>
      <Die_No_Per_Chip>1</Die_No_Per_Chip>
      <Plane_No_Per_Die>2</Plane_No_Per_Die>
      <Block_No_Per_Plane>256</Block_No_Per_Plane>
      <Page_No_Per_Block>64</Page_No_Per_Block>
      <Page_Capacity>8192</Page_Capacity>
    </Flash_Parameter_Set>
  </Device_Parameter_Set>
</Execution_Parameter_Set>
XML
floatgate device import ssdconfig.xml >imported.toml
floatgate device check ./imported.toml
for number in {1..200}; do
    # Arrival in ns, device, first sector, sectors, and 0 for a write or 1 for a read.
    echo "$((number * 100000)) 0 $((number * 128 % 20000)) 16 $((number % 2))"
done >requests.trace
floatgate run ./imported.toml requests.trace --format mqsim --json >/dev/null
