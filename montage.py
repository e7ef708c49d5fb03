import sys
from PIL import Image
ims=[Image.open(f'/tmp/visit_wide/r2/{n}.png') for n in sys.argv[2:]]
w,h=ims[0].size; c=2; r=(len(ims)+1)//2
o=Image.new('RGB',(w*c,h*r))
for i,m in enumerate(ims): o.paste(m,((i%2)*w,(i//2)*h))
o.save('/tmp/visit_wide/r2/'+sys.argv[1]+'.png')
